// Floats: flushing, saturation, whole numbers, and the functions of one number.
#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/elements.h"
#include "softgpu/ptx/translate/instructions/numbers.h"

#include <limits>

namespace tutti::softgpu::ptx {
namespace {

/// rcp, sqrt and their like: the approximate forms are as good as the exact ones here.
Value* functionOf(Emitter& e, const Instruction& i, Value* number) {
  auto& ir = e.ir();
  llvm::Type* type = number->getType();
  Value* one = llvm::ConstantFP::get(type, 1);
  const unsigned rounding = roundingOf(i);
  const std::string suffix = type->isDoubleTy() ? "_f64" : "_f32";
  if (i.opcode == "rcp") {
    if (rounding != 0) return e.callSupport("ptx_div" + suffix, type, {one, number, ir.getInt32(rounding)});
    return ir.CreateFDiv(one, number);
  }
  if (i.opcode == "sqrt") {
    if (rounding != 0) return e.callSupport("ptx_sqrt" + suffix, type, {number, ir.getInt32(rounding)});
    return ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, number);
  }
  if (i.opcode == "rsqrt") return ir.CreateFDiv(one, ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, number));
  const std::string name = i.opcode == "ex2" ? "exp2f" : i.opcode == "lg2" ? "log2f" : i.opcode + "f";
  return e.callSupport(name, ir.getFloatTy(), {number});
}

void function(Emitter& e, const Instruction& i) {
  const Type type = i.type();
  elementwise(e, i, type, 1, [&](const std::vector<Value*>& of, Type element) {
    return flushed(e, i, functionOf(e, i, flushed(e, i, of[0], element)), element);
  });
}

/// The sign of the first operand, the rest of the second.
void copySign(Emitter& e, const Instruction& i) {
  elementwise(e, i, i.type(), 2, [&](const std::vector<Value*>& of, Type) {
    return e.ir().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, of[1], of[0]);
  });
}

void testProperty(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Type type = i.type();
  Value* number = e.number(i.operands.at(1), type);
  unsigned mask = 0;
  if (i.has("finite")) mask = llvm::fcFinite;
  if (i.has("infinite")) mask = llvm::fcInf;
  if (i.has("number")) mask = llvm::fcInf | llvm::fcFinite;
  if (i.has("notanumber")) mask = llvm::fcNan;
  if (i.has("normal")) mask = llvm::fcNormal | llvm::fcZero;
  if (i.has("subnormal")) mask = llvm::fcSubnormal;
  if (mask == 0) e.refuse("this property");
  e.write(i.operands[0], ir.createIsFPClass(number, mask));
}

}  // namespace

Value* isNan(Emitter& e, Value* number) {
  return e.ir().CreateFCmpUNO(number, number);
}

Value* canonicalNan(Emitter& e, Value* likeThis) {
  if (likeThis->getType()->isDoubleTy()) {
    return e.ir().CreateBitCast(e.integer(64, 0x7fffffffffffffffULL), e.ir().getDoubleTy());
  }
  return e.ir().CreateBitCast(e.integer(32, 0x7fffffff), e.ir().getFloatTy());
}

Value* flushed(Emitter& e, const Instruction& i, Value* number, Type type) {
  if (!i.has("ftz") || !number->getType()->isFloatTy()) return number;
  auto& ir = e.ir();
  const bool half = type.isSmallFloat() && type.kind == Kind::Float;
  const float least = half ? 0x1p-14F : std::numeric_limits<float>::min();
  Value* size = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, number);
  Value* small = ir.CreateFCmpOLT(size, llvm::ConstantFP::get(ir.getFloatTy(), least));
  Value* zero = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, llvm::ConstantFP::get(ir.getFloatTy(), 0), number);
  return ir.CreateSelect(small, zero, number);
}

Value* saturated(Emitter& e, const Instruction& i, Value* number) {
  if (!i.has("sat")) return number;
  auto& ir = e.ir();
  Value* zero = llvm::ConstantFP::get(number->getType(), 0);
  Value* one = llvm::ConstantFP::get(number->getType(), 1);
  // Comparisons with what is no number are false, so it becomes zero.
  Value* above = ir.CreateSelect(ir.CreateFCmpOGT(number, zero), number, zero);
  return ir.CreateSelect(ir.CreateFCmpOLT(above, one), above, one);
}

Value* wholeNumber(Emitter& e, const Instruction& i, Value* number) {
  auto which = llvm::Intrinsic::not_intrinsic;
  if (i.has("rni")) which = llvm::Intrinsic::roundeven;
  if (i.has("rzi")) which = llvm::Intrinsic::trunc;
  if (i.has("rmi")) which = llvm::Intrinsic::floor;
  if (i.has("rpi")) which = llvm::Intrinsic::ceil;
  return which == llvm::Intrinsic::not_intrinsic ? number : e.ir().CreateUnaryIntrinsic(which, number);
}

unsigned roundingOf(const Instruction& i) {
  if (i.has("rz")) return 1;
  if (i.has("rm")) return 2;
  if (i.has("rp")) return 3;
  if (i.has("rna")) return 4;
  return 0;
}

Value* halfBits(Emitter& e, Value* asDouble, Type type, unsigned rounding) {
  const char* name = type.kind == Kind::BFloat ? "ptx_bf16_bits" : "ptx_f16_bits";
  return e.ir().CreateTrunc(e.callSupport(name, e.ir().getInt32Ty(), {asDouble, e.ir().getInt32(rounding)}),
                            e.ir().getInt16Ty());
}

/// Of a number and what is none the number, unless `.NaN` is asked for; -0 is smaller than +0.
Value* smallerOf(Emitter& e, const Instruction& i, Value* a, Value* b, bool larger) {
  auto& ir = e.ir();
  Value* sign = nullptr;
  if (i.has("xorsign")) {
    const unsigned width = a->getType()->isDoubleTy() ? 64 : 32;
    const auto bitsOf = [&](Value* x) { return ir.CreateBitCast(x, ir.getIntNTy(width)); };
    sign = ir.CreateBitCast(ir.CreateXor(bitsOf(a), bitsOf(b)), a->getType());
  }
  if (i.has("abs")) {
    a = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    b = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b);
  }
  Value* both = ir.CreateBinaryIntrinsic(larger ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  Value* result = nullptr;
  if (i.has("NaN")) {
    result = ir.CreateSelect(ir.CreateOr(isNan(e, a), isNan(e, b)), canonicalNan(e, a), both);
  } else {
    result = ir.CreateSelect(isNan(e, a), b, ir.CreateSelect(isNan(e, b), a, both));
    result = ir.CreateSelect(ir.CreateAnd(isNan(e, a), isNan(e, b)), canonicalNan(e, a), result);
  }
  if (sign == nullptr) return result;
  Value* signedResult = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, sign);
  return ir.CreateSelect(isNan(e, result), result, signedResult);
}

void addFloatInstructions(Handlers& handlers) {
  for (const std::string_view name : {"rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh"}) {
    handlers[name] = function;
  }
  handlers["copysign"] = copySign;
  handlers["testp"] = testProperty;
}

}  // namespace tutti::softgpu::ptx
