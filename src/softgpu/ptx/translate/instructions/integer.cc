// Integer arithmetic.
#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/elements.h"
#include "softgpu/ptx/translate/instructions/numbers.h"

namespace tutti::softgpu::ptx {
namespace {

Value* wide(Emitter& e, Value* value, Type type, unsigned bits) {
  llvm::Type* to = e.ir().getIntNTy(bits);
  return type.isSigned() ? e.ir().CreateSExt(value, to) : e.ir().CreateZExt(value, to);
}

/// The product's half that was asked for.
Value* product(Emitter& e, const Instruction& i, Value* a, Value* b, Type type) {
  auto& ir = e.ir();
  if (!i.has("hi") && !i.has("wide")) return ir.CreateMul(a, b);
  const unsigned twice = 2U * type.bits;
  Value* whole = ir.CreateMul(wide(e, a, type, twice), wide(e, b, type, twice));
  return i.has("wide") ? whole : ir.CreateTrunc(ir.CreateLShr(whole, type.bits), ir.getIntNTy(type.bits));
}

Value* saturating(Emitter& e, bool add, Value* a, Value* b, Type type) {
  const auto which = add ? (type.isSigned() ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::uadd_sat)
                         : (type.isSigned() ? llvm::Intrinsic::ssub_sat : llvm::Intrinsic::usub_sat);
  return e.ir().CreateBinaryIntrinsic(which, a, b);
}

void multiply(Emitter& e, const Instruction& i) {
  const Type type = i.type();
  Value* result = product(e, i, e.bits(i.operands.at(1), type.bits), e.bits(i.operands.at(2), type.bits), type);
  e.write(i.operands[0], result, type.isSigned());
}

void multiplyAddIntegers(Emitter& e, const Instruction& i) {
  const Type type = i.type();
  Value* result = product(e, i, e.bits(i.operands.at(1), type.bits), e.bits(i.operands.at(2), type.bits), type);
  Value* c = e.bits(i.operands.at(3), result->getType()->getIntegerBitWidth());
  result = i.has("sat") ? saturating(e, true, result, c, type) : e.ir().CreateAdd(result, c);
  e.write(i.operands[0], result, type.isSigned());
}

/// mul24 and mad24: of the lowest 24 bits the product's lower or upper 32 of 48.
Value* product24(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const bool isSigned = i.type().isSigned();
  const auto cut = [&](const Operand& operand) {
    Value* shifted = ir.CreateShl(e.bits(operand, 32), 8);
    Value* value = isSigned ? ir.CreateAShr(shifted, 8) : ir.CreateLShr(shifted, 8);
    return isSigned ? ir.CreateSExt(value, ir.getInt64Ty()) : ir.CreateZExt(value, ir.getInt64Ty());
  };
  Value* whole = ir.CreateMul(cut(i.operands.at(1)), cut(i.operands.at(2)));
  if (i.has("hi")) whole = ir.CreateLShr(whole, 16);
  return ir.CreateTrunc(whole, ir.getInt32Ty());
}

void multiply24(Emitter& e, const Instruction& i) {
  e.write(i.operands.at(0), product24(e, i), i.type().isSigned());
}

void multiplyAdd24(Emitter& e, const Instruction& i) {
  Value* c = e.bits(i.operands.at(3), 32);
  Value* product = product24(e, i);
  const Type type = i.type();
  e.write(i.operands[0], i.has("sat") ? saturating(e, true, product, c, type) : e.ir().CreateAdd(product, c),
          type.isSigned());
}

/// x86 traps where PTX leaves the result open: there it is what GPUs give, all ones for a divisor of zero.
Value* quotient(Emitter& e, Value* a, Value* b, Type type, bool remainder) {
  auto& ir = e.ir();
  Value* zero = ir.CreateICmpEQ(b, e.integer(type.bits, 0));
  Value* one = e.integer(type.bits, 1);
  Value* ones = llvm::ConstantInt::getAllOnesValue(b->getType());
  Value* unsafe = type.isSigned() ? ir.CreateOr(zero, ir.CreateICmpEQ(b, ones)) : zero;
  Value* divisor = ir.CreateSelect(unsafe, one, b);
  Value* result = nullptr;
  if (remainder) {
    result = type.isSigned() ? ir.CreateSRem(a, divisor) : ir.CreateURem(a, divisor);
    return ir.CreateSelect(zero, a, result);
  }
  result = type.isSigned() ? ir.CreateSDiv(a, divisor) : ir.CreateUDiv(a, divisor);
  if (type.isSigned()) result = ir.CreateSelect(ir.CreateICmpEQ(b, ones), ir.CreateNeg(a), result);
  return ir.CreateSelect(zero, ones, result);
}

void remainder(Emitter& e, const Instruction& i) {
  elementwise(e, i, i.type(), 2, [&](const auto& of, Type type) { return quotient(e, of[0], of[1], type, true); });
}

void sumOfDifferences(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Type type = i.type();
  Value* a = e.bits(i.operands.at(1), type.bits);
  Value* b = e.bits(i.operands.at(2), type.bits);
  Value* less = type.isSigned() ? ir.CreateICmpSLT(a, b) : ir.CreateICmpULT(a, b);
  Value* difference = ir.CreateSelect(less, ir.CreateSub(b, a), ir.CreateSub(a, b));
  e.write(i.operands[0], ir.CreateAdd(difference, e.bits(i.operands.at(3), type.bits)), type.isSigned());
}

/// dp4a: four products of bytes; dp2a: two of a half and a byte, of the lower or upper two bytes.
void dotProduct(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const bool four = i.opcode == "dp4a";
  Value* a = e.bits(i.operands.at(1), 32);
  Value* b = e.bits(i.operands.at(2), 32);
  Value* sum = e.bits(i.operands.at(3), 32);
  const auto part = [&](Value* from, unsigned at, unsigned width, bool isSigned) {
    Value* cut = ir.CreateTrunc(ir.CreateLShr(from, at), ir.getIntNTy(width));
    return isSigned ? ir.CreateSExt(cut, ir.getInt32Ty()) : ir.CreateZExt(cut, ir.getInt32Ty());
  };
  const bool aSigned = i.type(0).isSigned();
  const bool bSigned = i.type(1).isSigned();
  const unsigned first = !four && i.has("hi") ? 16 : 0;
  for (unsigned n = 0; n < (four ? 4U : 2U); ++n) {
    Value* left = four ? part(a, 8 * n, 8, aSigned) : part(a, 16 * n, 16, aSigned);
    sum = ir.CreateAdd(sum, ir.CreateMul(left, part(b, first + 8 * n, 8, bSigned)));
  }
  e.write(i.operands[0], sum);
}

}  // namespace

Value* integerSum(Emitter& e, const Instruction& i, Value* a, Value* b, Type type) {
  if (i.has("sat")) return saturating(e, i.opcode == "add", a, b, type);
  return i.opcode == "add" ? e.ir().CreateAdd(a, b) : e.ir().CreateSub(a, b);
}

void integerMultiply(Emitter& e, const Instruction& i) {
  multiply(e, i);
}

void integerMultiplyAdd(Emitter& e, const Instruction& i) {
  multiplyAddIntegers(e, i);
}

Value* integerQuotient(Emitter& e, Value* a, Value* b, Type type) {
  return quotient(e, a, b, type, false);
}

void addIntegerInstructions(Handlers& handlers) {
  handlers["mul24"] = multiply24;
  handlers["mad24"] = multiplyAdd24;
  handlers["rem"] = remainder;
  handlers["sad"] = sumOfDifferences;
  handlers["dp4a"] = dotProduct;
  handlers["dp2a"] = dotProduct;
}

}  // namespace tutti::softgpu::ptx
