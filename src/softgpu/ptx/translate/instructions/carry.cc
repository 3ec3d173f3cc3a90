// Sums longer than a word: add.cc, addc, sub.cc, subc, mad.cc, madc. The carry is a bit in the function's frame.
#include "softgpu/ptx/translate/instructions/carry.h"

#include "softgpu/ptx/translate/handlers.h"

namespace tutti::softgpu::ptx {
namespace {

/// a + b + carry, or a - b - borrow, in one more bit, which is the new carry or borrow.
void sum(Emitter& e, const Instruction& i, const Operand& result, Value* a, Value* b, bool add, bool takesCarry) {
  auto& ir = e.ir();
  const unsigned width = a->getType()->getIntegerBitWidth();
  llvm::Type* longer = ir.getIntNTy(width + 1);
  Value* carry =
      takesCarry ? ir.CreateZExt(ir.CreateLoad(ir.getInt1Ty(), e.carry()), longer) : llvm::ConstantInt::get(longer, 0);
  Value* left = ir.CreateZExt(a, longer);
  Value* right = ir.CreateZExt(b, longer);
  Value* whole = add ? ir.CreateAdd(ir.CreateAdd(left, right), carry) : ir.CreateSub(ir.CreateSub(left, right), carry);
  if (i.has("cc")) ir.CreateStore(ir.CreateTrunc(ir.CreateLShr(whole, width), ir.getInt1Ty()), e.carry());
  e.write(result, ir.CreateTrunc(whole, a->getType()));
}

void carrying(Emitter& e, const Instruction& i) {
  const unsigned bits = i.type().bits;
  sum(e, i, i.operands.at(0), e.bits(i.operands.at(1), bits), e.bits(i.operands.at(2), bits), i.opcode == "addc", true);
}

void carryingMultiplyAdd(Emitter& e, const Instruction& i, bool takesCarry) {
  auto& ir = e.ir();
  const Type type = i.type();
  llvm::Type* twice = ir.getIntNTy(2U * type.bits);
  const auto widened = [&](const Operand& operand) {
    Value* value = e.bits(operand, type.bits);
    return type.isSigned() ? ir.CreateSExt(value, twice) : ir.CreateZExt(value, twice);
  };
  Value* product = ir.CreateMul(widened(i.operands.at(1)), widened(i.operands.at(2)));
  if (i.has("hi")) product = ir.CreateLShr(product, type.bits);
  sum(e, i, i.operands[0], ir.CreateTrunc(product, ir.getIntNTy(type.bits)), e.bits(i.operands.at(3), type.bits), true,
      takesCarry);
}

}  // namespace

void carryOut(Emitter& e, const Instruction& i) {
  if (i.opcode == "mad") return carryingMultiplyAdd(e, i, false);
  const unsigned bits = i.type().bits;
  sum(e, i, i.operands.at(0), e.bits(i.operands.at(1), bits), e.bits(i.operands.at(2), bits), i.opcode == "add", false);
}

void addCarryInstructions(Handlers& handlers) {
  handlers["addc"] = handlers["subc"] = carrying;
  handlers["madc"] = [](Emitter& e, const Instruction& i) { carryingMultiplyAdd(e, i, true); };
}

}  // namespace tutti::softgpu::ptx
