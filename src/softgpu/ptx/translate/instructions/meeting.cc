// Where threads meet: barriers of the block, and what the lanes of a warp tell one another.
#include <cstddef>

#include "softgpu/ptx/translate/handlers.h"

namespace tutti::softgpu::ptx {
namespace {

Value* blockThreads(Emitter& e) {
  return e.selfWord(offsetof(simt::HostThread, threads), e.ir().getInt32Ty());
}

/// Warps count whole; the last of a block may not be.
Value* threadsOf(Emitter& e, const Instruction& i, std::size_t operand) {
  if (i.operands.size() <= operand) return blockThreads(e);
  return e.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, e.bits(i.operands[operand], 32), blockThreads(e));
}

void syncWarp(Emitter& e, const Instruction& i) {
  e.callSupport("ptx_warp_sync", e.ir().getVoidTy(), {e.frame().self, e.bits(i.operands.at(0), 32)});
}

/// bar.red.popc d, a{, b}, p; with .and and .or the result is a predicate.
void reduceAtBarrier(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const bool withCount = i.operands.size() > 3;
  Value* id = e.bits(i.operands.at(1), 32);
  Value* threads = withCount ? threadsOf(e, i, 2) : blockThreads(e);
  Value* given = e.predicate(i.operands.at(withCount ? 3 : 2));
  Value* count =
      e.callOps(offsetof(simt::HostOps, barrierCount), ir.getInt32Ty(), {e.frame().self, id, threads, given});
  if (i.has("popc")) return e.write(i.operands[0], count);
  e.write(i.operands[0], i.has("and") ? ir.CreateICmpEQ(count, threads) : ir.CreateICmpNE(count, ir.getInt32(0)));
}

void barrier(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  if (i.has("warp")) return syncWarp(e, i);
  if (i.has("red")) return reduceAtBarrier(e, i);
  if (i.has("cluster")) {
    // A cluster is of one block; its threads wait where they would wait for the others.
    if (i.has("arrive")) return;
    e.callOps(offsetof(simt::HostOps, barrier), ir.getVoidTy(), {e.frame().self, ir.getInt32(0), blockThreads(e)});
    return;
  }
  const std::size_t ops = i.has("arrive") ? offsetof(simt::HostOps, barrierArrive) : offsetof(simt::HostOps, barrier);
  e.callOps(ops, ir.getVoidTy(), {e.frame().self, e.bits(i.operands.at(0), 32), threadsOf(e, i, 1)});
}

/// shfl.sync.mode d|p, value, lane, limits, mask
void shuffle(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  if (!i.has("sync")) e.refuse("a shuffle without .sync");
  const unsigned mode = i.has("up") ? 0 : i.has("down") ? 1 : i.has("bfly") ? 2 : 3;
  Value* both = e.callSupport("ptx_shuffle", ir.getInt64Ty(),
                              {e.frame().self, e.bits(i.operands.at(1), 32), e.bits(i.operands.at(2), 32),
                               e.bits(i.operands.at(3), 32), e.bits(i.operands.at(4), 32), ir.getInt32(mode)});
  const std::vector<Operand> to = Emitter::partsOf(i.operands[0]);
  e.write(to[0], ir.CreateTrunc(both, ir.getInt32Ty()));
  if (to.size() > 1) e.write(to[1], ir.CreateTrunc(ir.CreateLShr(both, 32), ir.getInt1Ty()));
}

void vote(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  if (!i.has("sync")) e.refuse("a vote without .sync");
  Value* given = e.predicate(i.operands.at(1));
  // Below the lanes that said yes, above those that voted.
  Value* votes = e.callSupport("ptx_votes", ir.getInt64Ty(),
                               {e.frame().self, e.bits(i.operands.at(2), 32), ir.CreateZExt(given, ir.getInt32Ty())});
  Value* yes = ir.CreateTrunc(votes, ir.getInt32Ty());
  Value* voters = ir.CreateTrunc(ir.CreateLShr(votes, 32), ir.getInt32Ty());
  Value* all = ir.CreateICmpEQ(yes, voters);
  Value* any = ir.CreateICmpNE(yes, ir.getInt32(0));
  if (i.has("ballot")) return e.write(i.operands[0], yes);
  if (i.has("all")) return e.write(i.operands[0], all);
  if (i.has("any")) return e.write(i.operands[0], any);
  e.write(i.operands[0], ir.CreateOr(all, ir.CreateNot(any)));
}

/// match.any: the lanes with the same value; match.all d|p: all lanes if all have the same, else none.
void match(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  Value* value = ir.CreateZExt(e.bits(i.operands.at(1), i.type().bits), ir.getInt64Ty());
  Value* lanes = e.bits(i.operands.at(2), 32);
  const std::vector<Operand> to = Emitter::partsOf(i.operands[0]);
  Value* same = e.callSupport("ptx_match", ir.getInt32Ty(), {e.frame().self, lanes, value});
  if (i.has("any")) return e.write(to[0], same);
  Value* all = ir.CreateICmpEQ(same, lanes);
  e.write(to[0], ir.CreateSelect(all, lanes, ir.getInt32(0)));
  if (to.size() > 1) e.write(to[1], all);
}

void reduceWarp(Emitter& e, const Instruction& i) {
  static constexpr std::string_view kOperations[] = {"add", "min", "max", "and", "or", "xor"};
  unsigned which = 0;
  for (unsigned n = 0; n < std::size(kOperations); ++n) which = i.has(kOperations[n]) ? n : which;
  if (i.type().isFloat()) e.refuse("a reduction of floats");
  const unsigned isSigned = i.type().isSigned() ? 8 : 0;
  e.write(i.operands.at(0), e.callSupport("ptx_reduce", e.ir().getInt32Ty(),
                                          {e.frame().self, e.bits(i.operands.at(2), 32), e.bits(i.operands.at(1), 32),
                                           e.ir().getInt32(which + isSigned)}));
}

void activeMask(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  e.write(i.operands.at(0), e.callOps(offsetof(simt::HostOps, activeMask), ir.getInt32Ty(),
                                      {e.frame().self, ir.getInt32(static_cast<std::uint32_t>(i.line))}));
}

/// The lowest lane of the mask is elected.
void elect(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const std::vector<Operand> to = Emitter::partsOf(i.operands.at(0));
  Value* mask = e.bits(i.operands.at(1), 32);
  e.callSupport("ptx_warp_sync", ir.getVoidTy(), {e.frame().self, mask});
  Value* leader = ir.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask, ir.getInt1(false));
  e.write(to[0], leader);
  Value* lane = e.bits({NameOperand{"%laneid", "", 0}, false}, 32);
  if (to.size() > 1) e.write(to[1], ir.CreateICmpEQ(lane, leader));
}

}  // namespace

void addMeetingInstructions(Handlers& handlers) {
  handlers["bar"] = handlers["barrier"] = barrier;
  handlers["shfl"] = shuffle;
  handlers["vote"] = vote;
  handlers["match"] = match;
  handlers["redux"] = reduceWarp;
  handlers["activemask"] = activeMask;
  handlers["elect"] = elect;
}

}  // namespace tutti::softgpu::ptx
