// mov, and conversions between address spaces.
#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/memory_words.h"

namespace tutti::softgpu::ptx {
namespace {

/// `mov.b64 {a, b}, c` takes apart, `mov.b64 c, {a, b}` puts together.
void move(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Type type = i.type();
  const Operand& to = i.operands.at(0);
  const Operand& from = i.operands.at(1);
  if (const GroupOperand* group = from.group()) {
    const unsigned part = type.bits / static_cast<unsigned>(group->parts.size());
    Value* all = e.integer(type.bits, 0);
    for (unsigned n = 0; n < group->parts.size(); ++n) {
      Value* value = ir.CreateZExt(e.bits(group->parts[n], part), all->getType());
      all = ir.CreateOr(all, ir.CreateShl(value, n * part));
    }
    return e.write(to, all);
  }
  Value* value = e.bits(from, type.bits);
  const GroupOperand* group = to.group();
  if (group == nullptr) return e.write(to, value, type.isSigned());
  const unsigned part = type.bits / static_cast<unsigned>(group->parts.size());
  for (unsigned n = 0; n < group->parts.size(); ++n) {
    e.write(group->parts[n], ir.CreateTrunc(ir.CreateLShr(value, n * part), ir.getIntNTy(part)));
  }
}

/// cvta: from an address in a space to a generic one, or back with `.to`.
void convertAddress(Emitter& e, const Instruction& i) {
  const Space space = spaceOf(i);
  Value* address = e.bits(i.operands.at(1), 64);
  e.write(i.operands[0], i.has("to") ? e.spaceOf(address, space) : e.genericOf(address, space));
}

/// isspacep: shared memory is a range; everything else that is not in the frame is global.
void isInSpace(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  Value* address = e.bits(i.operands.at(1), 64);
  Value* begin = e.genericOf(ir.getInt64(0), Space::Shared);
  Value* size = ir.CreateZExt(e.bits({NameOperand{"%total_smem_size", "", 0}, false}, 32), ir.getInt64Ty());
  Value* inShared = ir.CreateICmpULT(ir.CreateSub(address, begin), size);
  const Space space = spaceOf(i);
  if (space == Space::Shared) return e.write(i.operands[0], inShared);
  Value* inLocal = e.callSupport("ptx_on_stack", ir.getInt1Ty(), {address});
  if (space == Space::Local) return e.write(i.operands[0], inLocal);
  if (space != Space::Global) e.refuse("asking for this space");
  e.write(i.operands[0], ir.CreateNot(ir.CreateOr(inShared, inLocal)));
}

/// A cluster is of one block: its shared memory is this one's.
void mapShared(Emitter& e, const Instruction& i) {
  e.write(i.operands.at(0), e.bits(i.operands.at(1), 64));
}

void clusterRank(Emitter& e, const Instruction& i) {
  e.write(i.operands.at(0), e.integer(32, 0));
}

}  // namespace

void addMoveInstructions(Handlers& handlers) {
  handlers["mov"] = move;
  handlers["cvta"] = convertAddress;
  handlers["isspacep"] = isInSpace;
  handlers["mapa"] = mapShared;
  handlers["getctarank"] = clusterRank;
}

}  // namespace tutti::softgpu::ptx
