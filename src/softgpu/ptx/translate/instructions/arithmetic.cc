// Arithmetic whose opcode serves integers and floats alike.
#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/carry.h"
#include "softgpu/ptx/translate/instructions/elements.h"
#include "softgpu/ptx/translate/instructions/numbers.h"

namespace tutti::softgpu::ptx {
namespace {

using Numbers = std::vector<Value*>;

/// What every float instruction does with its result: `.ftz`, `.sat`, `.relu`.
Value* finished(Emitter& e, const Instruction& i, Value* number, Type type) {
  number = saturated(e, i, flushed(e, i, number, type));
  if (!i.has("relu")) return number;
  auto& ir = e.ir();
  Value* zero = llvm::ConstantFP::get(number->getType(), 0);
  Value* positive = ir.CreateSelect(ir.CreateFCmpOGT(number, zero), number, zero);
  return ir.CreateSelect(isNan(e, number), canonicalNan(e, number), positive);
}

/// An operation that rounds: LLVM's own to the nearest, support.h's for the other modes.
Value* rounded(Emitter& e, const Instruction& i, const std::string& name, const Numbers& of, Type type) {
  auto& ir = e.ir();
  const unsigned rounding = roundingOf(i);
  if (rounding != 0 && !type.isSmallFloat()) {
    std::vector<Value*> arguments(of.begin(), of.end());
    arguments.push_back(ir.getInt32(rounding));
    return e.callSupport("ptx_" + name + (type.bits == 64 ? "_f64" : "_f32"), of[0]->getType(), arguments);
  }
  if (name == "add") return ir.CreateFAdd(of[0], of[1]);
  if (name == "sub") return ir.CreateFSub(of[0], of[1]);
  if (name == "mul") return ir.CreateFMul(of[0], of[1]);
  if (name == "div") return ir.CreateFDiv(of[0], of[1]);
  if (!type.isSmallFloat()) return ir.CreateIntrinsic(of[0]->getType(), llvm::Intrinsic::fma, of);
  // Of halves float would round twice.
  const char* half = type.kind == Kind::BFloat ? "ptx_fma_bf16" : "ptx_fma_f16";
  return e.callSupport(half, ir.getFloatTy(), of);
}

void floatOperation(Emitter& e, const Instruction& i, const std::string& name, std::size_t sources) {
  elementwise(e, i, i.type(), sources, [&](Numbers of, Type type) {
    for (Value*& number : of) number = flushed(e, i, number, type);
    return finished(e, i, rounded(e, i, name, of, type), type);
  });
}

void sum(Emitter& e, const Instruction& i) {
  if (i.has("cc")) return carryOut(e, i);
  if (i.type().isFloat()) return floatOperation(e, i, i.opcode, 2);
  elementwise(e, i, i.type(), 2, [&](const Numbers& of, Type type) { return integerSum(e, i, of[0], of[1], type); });
}

void product(Emitter& e, const Instruction& i) {
  i.type().isFloat() ? floatOperation(e, i, "mul", 2) : integerMultiply(e, i);
}

void multiplyAdd(Emitter& e, const Instruction& i) {
  if (i.has("cc")) return carryOut(e, i);
  i.type().isFloat() ? floatOperation(e, i, "fma", 3) : integerMultiplyAdd(e, i);
}

void quotient(Emitter& e, const Instruction& i) {
  if (i.type().isFloat()) return floatOperation(e, i, "div", 2);
  elementwise(e, i, i.type(), 2, [&](const Numbers& of, Type type) { return integerQuotient(e, of[0], of[1], type); });
}

void extreme(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const bool larger = i.opcode == "max";
  elementwise(e, i, i.type(), i.operands.size() - 1, [&](const Numbers& of, Type type) {
    Value* result = type.isFloat() ? flushed(e, i, of[0], type) : of[0];
    for (std::size_t n = 1; n < of.size(); ++n) {
      if (type.isFloat()) {
        result = smallerOf(e, i, result, flushed(e, i, of[n], type), larger);
        continue;
      }
      const auto which = type.isSigned() ? (larger ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                         : (larger ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
      result = ir.CreateBinaryIntrinsic(which, result, of[n]);
    }
    if (type.isFloat()) return finished(e, i, result, type);
    if (!i.has("relu")) return result;
    return ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, result, e.integer(type.bits, 0));
  });
}

/// The sign of a half is a bit of its own also where it is no number: no detour over float.
Value* signChanged(Emitter& e, const Instruction& i, Value* number, Type type) {
  auto& ir = e.ir();
  const bool absolute = i.opcode == "abs";
  if (!type.isFloat()) {
    Value* negative = ir.CreateNeg(number);
    return absolute ? ir.CreateSelect(ir.CreateICmpSLT(number, e.integer(type.bits, 0)), negative, number) : negative;
  }
  number = flushed(e, i, number, type);
  return absolute ? ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, number) : ir.CreateFNeg(number);
}

void sign(Emitter& e, const Instruction& i) {
  elementwise(e, i, i.type(), 1, [&](const Numbers& of, Type type) { return signChanged(e, i, of[0], type); });
}

}  // namespace

void addArithmeticInstructions(Handlers& handlers) {
  handlers["add"] = handlers["sub"] = sum;
  handlers["mul"] = product;
  handlers["mad"] = handlers["fma"] = multiplyAdd;
  handlers["div"] = quotient;
  handlers["min"] = handlers["max"] = extreme;
  handlers["abs"] = handlers["neg"] = sign;
}

}  // namespace tutti::softgpu::ptx
