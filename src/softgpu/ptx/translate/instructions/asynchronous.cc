// Copies that a GPU makes on the side, and the barriers in memory (mbarrier) that say when they are done. Copies are
// made at once.
#include <cstddef>

#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/delayed.h"
#include "softgpu/ptx/translate/instructions/memory_words.h"

namespace tutti::softgpu::ptx {
namespace {

constexpr unsigned kBulkAlign = 16;
constexpr unsigned kBarrierBytes = 8;

/// The address of an mbarrier object, where it can be worked on.
Value* barrierAt(Emitter& e, const Instruction& i, std::size_t operand, Space space) {
  Value* address = e.address(i.operands.at(operand), space);
  if (!e.unit().weakMemory) return address;
  checkPlace(e, address, kBarrierBytes, space);
  settle(e, address, kBarrierBytes);
  return address;
}

Value* barrierAt(Emitter& e, const Instruction& i, std::size_t operand) {
  return barrierAt(e, i, operand, spaceOf(i));
}

void addBytes(Emitter& e, Value* barrier, Value* bytes) {
  e.callSupport("ptx_mbarrier_bytes", e.ir().getVoidTy(), {barrier, bytes});
}

/// state, [barrier]{, count}; with .expect_tx the last operand is a number of bytes instead.
void arrive(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const bool bytes = i.has("expect_tx");
  Value* given = i.operands.size() > 2 ? e.bits(i.operands[2], 32) : nullptr;
  Value* one = ir.getInt32(1);
  Value* barrier = barrierAt(e, i, 1);
  if (e.unit().weakMemory && !i.has("relaxed")) delayedRelease(e, simt::FenceScope::Block);
  Value* state = e.callSupport("ptx_mbarrier_arrive", ir.getInt64Ty(),
                               {e.frame().self, barrier, bytes || given == nullptr ? one : given,
                                bytes ? given : ir.getInt32(0), ir.getInt1(i.has("arrive_drop"))});
  if (!i.operands[0].isSink()) e.write(i.operands[0], state);
}

/// done, [barrier], state or parity{, time}. try_wait may wait, which test_wait must not.
void look(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  Value* barrier = barrierAt(e, i, 1);
  Value* done = i.has("parity")
                    ? e.callSupport("ptx_mbarrier_parity_done", ir.getInt1Ty(), {barrier, e.bits(i.operands.at(2), 32)})
                    : e.callSupport("ptx_mbarrier_done", ir.getInt1Ty(), {barrier, e.bits(i.operands.at(2), 64)});
  if (e.unit().weakMemory && !i.has("relaxed")) delayedAcquire(e, simt::FenceScope::Block);
  e.write(i.operands[0], done);
}

void barrierInMemory(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  if (i.has("init")) {
    e.callSupport("ptx_mbarrier_init", ir.getVoidTy(), {barrierAt(e, i, 0), e.bits(i.operands.at(1), 32)});
  } else if (i.has("inval")) {
    barrierAt(e, i, 0);
  } else if (i.has("arrive") || i.has("arrive_drop")) {
    if (i.has("expect_tx") && i.operands.size() < 3) e.refuse("it without a number of bytes");
    arrive(e, i);
  } else if (i.has("test_wait") || i.has("try_wait")) {
    look(e, i);
  } else if (i.has("pending_count")) {
    e.write(i.operands.at(0), e.callSupport("ptx_mbarrier_pending", ir.getInt32Ty(), {e.bits(i.operands.at(1), 64)}));
  } else if (i.has("expect_tx") || i.has("complete_tx")) {
    Value* bytes = e.bits(i.operands.at(1), 32);
    addBytes(e, barrierAt(e, i, 0), i.has("expect_tx") ? bytes : ir.CreateNeg(bytes));
  } else {
    e.refuse("it");
  }
}

/// cp.async.bulk: [to], [from], bytes{, [barrier]}{, mask}{, policy}. A cluster is of one block.
void copyBulk(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  if (i.has("prefetch")) return;
  if (i.has("tensor")) e.refuse("this copy");
  const bool toGlobal = i.modifiers.size() > 2 && i.modifiers[2] == "global";
  const bool fromGlobal = !toGlobal && i.has("global");
  Value* to = e.address(i.operands.at(0), toGlobal ? Space::Global : Space::Shared);
  Value* from = e.address(i.operands.at(1), fromGlobal ? Space::Global : Space::Shared);
  Value* bytes = e.bits(i.operands.at(2), 32);
  Value* size = ir.CreateZExt(bytes, ir.getInt64Ty());
  const bool told = !i.has("bulk_group");
  if (e.unit().weakMemory) {
    checkPlace(e, to, kBulkAlign, toGlobal ? Space::Global : Space::Shared);
    checkPlace(e, from, kBulkAlign, fromGlobal ? Space::Global : Space::Shared);
    delayedCopyOf(e, to, from, size, told ? CopyEnd::Told : CopyEnd::Awaited);
  } else {
    ir.CreateMemCpy(to, llvm::MaybeAlign(), from, llvm::MaybeAlign(), size);
  }
  if (told) addBytes(e, barrierAt(e, i, 3, Space::Shared), ir.CreateNeg(bytes));
}

/// cp.async: [to], [from], bytes{, bytes that are there}: the rest is zeros.
void copySmall(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const NumberOperand* bytes = i.operands.at(2).number();
  if (bytes == nullptr) e.refuse("a copy of a size that is no number");
  const auto size = static_cast<unsigned>(bytes->bits);
  Value* to = e.address(i.operands.at(0), Space::Shared);
  Value* from = e.address(i.operands.at(1), Space::Global);
  Value* there = ir.getInt32(size);
  if (i.operands.size() > 3) {
    there = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, e.bits(i.operands[3], 32), there);
  }
  if (e.unit().weakMemory) {
    checkPlace(e, to, size, Space::Shared);
    checkPlace(e, from, size, Space::Global);
    return delayedCopy(e, to, from, size, ir.CreateZExt(there, ir.getInt64Ty()));
  }
  if (i.operands.size() > 3) ir.CreateMemSet(to, ir.getInt8(0), size, llvm::MaybeAlign());
  ir.CreateMemCpy(to, llvm::MaybeAlign(), from, llvm::MaybeAlign(), there);
}

/// cp.async.mbarrier.arrive [barrier]: once the thread's copies are done, which they are. Without .noinc it first
/// counts itself in, so that nothing changes.
void arriveAfterCopies(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  if (e.unit().weakMemory) finishCopies(e);
  if (!i.has("noinc")) return;
  Value* barrier = barrierAt(e, i, 0);
  if (e.unit().weakMemory) delayedRelease(e, simt::FenceScope::Block);
  e.callSupport("ptx_mbarrier_arrive", ir.getInt64Ty(),
                {e.frame().self, barrier, ir.getInt32(1), ir.getInt32(0), ir.getInt1(false)});
}

void copy(Emitter& e, const Instruction& i) {
  const bool waits = i.has("wait_group") || i.has("wait_all");
  // What .read waits for is that sources have been read.
  if (waits && e.unit().weakMemory && !i.has("read")) return finishCopies(e);
  if (i.has("commit_group") || waits) return;
  if (!i.has("async")) e.refuse("this copy");
  if (i.has("mbarrier") && !i.has("bulk")) return arriveAfterCopies(e, i);
  i.has("bulk") ? copyBulk(e, i) : copySmall(e, i);
}

/// An address in another block of the cluster: there is only the own one.
void mapAddress(Emitter& e, const Instruction& i) {
  e.write(i.operands.at(0), e.bits(i.operands.at(1), i.type().bits));
}
void rankInCluster(Emitter& e, const Instruction& i) {
  e.write(i.operands.at(0), e.ir().getInt32(0));
}

}  // namespace

void addAsynchronousInstructions(Handlers& handlers) {
  handlers["cp"] = copy;
  handlers["mbarrier"] = barrierInMemory;
  handlers["mapa"] = mapAddress;
  handlers["getctarank"] = rankInCluster;
}

}  // namespace tutti::softgpu::ptx
