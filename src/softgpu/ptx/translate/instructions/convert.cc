// Conversions.
#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/elements.h"
#include "softgpu/ptx/translate/instructions/numbers.h"

namespace tutti::softgpu::ptx {
namespace {

/// Cuts a number to what an integer type holds, of a wider type of the sign `isSigned`.
Value* clamped(Emitter& e, Value* value, bool isSigned, Type to) {
  auto& ir = e.ir();
  const unsigned width = value->getType()->getIntegerBitWidth();
  const llvm::APInt least = to.isSigned() ? llvm::APInt::getSignedMinValue(to.bits).sext(width) : llvm::APInt(width, 0);
  const llvm::APInt most = to.isSigned() ? llvm::APInt::getSignedMaxValue(to.bits).sext(width)
                                         : llvm::APInt::getMaxValue(to.bits).zext(width);
  const auto constant = [&](const llvm::APInt& number) { return llvm::ConstantInt::get(value->getType(), number); };
  if (!isSigned) return ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, constant(most));
  value = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, constant(least));
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, constant(most));
}

void integerToInteger(Emitter& e, const Instruction& i, Type to, Type from) {
  auto& ir = e.ir();
  Value* value = e.bits(i.operands.at(1), from.bits);
  value = from.isSigned() ? ir.CreateSExt(value, ir.getIntNTy(128)) : ir.CreateZExt(value, ir.getIntNTy(128));
  if (i.has("sat")) value = clamped(e, value, true, to);
  e.write(i.operands[0], ir.CreateTrunc(value, ir.getIntNTy(to.bits)), to.isSigned());
}

void integerToFloat(Emitter& e, const Instruction& i, Type to, Type from) {
  auto& ir = e.ir();
  Value* value = e.bits(i.operands.at(1), from.bits);
  const unsigned rounding = roundingOf(i);
  if (to.isSmallFloat() || rounding != 0) {
    value = from.isSigned() ? ir.CreateSExt(value, ir.getInt64Ty()) : ir.CreateZExt(value, ir.getInt64Ty());
    const std::string sign = from.isSigned() ? "signed" : "unsigned";
    if (!to.isSmallFloat()) {
      const std::string name = "ptx_" + sign + (to.bits == 64 ? "_to_f64" : "_to_f32");
      return e.writeNumber(i.operands[0], e.callSupport(name, e.typeOf(to), {value, ir.getInt32(rounding)}), to);
    }
    // Odd rounding to a double keeps what decides between two halves.
    Value* exact = e.callSupport("ptx_" + sign + "_to_odd", ir.getDoubleTy(), {value});
    return e.write(i.operands[0], halfBits(e, exact, to, rounding));
  }
  e.writeNumber(i.operands[0],
                from.isSigned() ? ir.CreateSIToFP(value, e.typeOf(to)) : ir.CreateUIToFP(value, e.typeOf(to)), to);
}

void floatToInteger(Emitter& e, const Instruction& i, Type to, Type from) {
  auto& ir = e.ir();
  Value* number = wholeNumber(e, i, flushed(e, i, e.number(i.operands.at(1), from), from));
  const auto which = to.isSigned() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  llvm::Type* type = ir.getIntNTy(to.bits);
  Value* result = ir.CreateIntrinsic(which, {type, number->getType()}, {number});
  if (from.bits == 64 || to.bits == 64) {
    // What is no number becomes the highest bit alone; between shorter types it becomes zero, as LLVM has it.
    result = ir.CreateSelect(isNan(e, number), e.integer(to.bits, std::uint64_t{1} << (to.bits - 1)), result);
  }
  e.write(i.operands[0], result, to.isSigned());
}

bool roundsToWhole(const Instruction& i) {
  return i.has("rni") || i.has("rzi") || i.has("rmi") || i.has("rpi");
}

Value* positivePart(Emitter& e, const Instruction& i, Value* number) {
  if (!i.has("relu")) return number;
  Value* zero = llvm::ConstantFP::get(number->getType(), 0);
  Value* positive = e.ir().CreateSelect(e.ir().CreateFCmpOGT(number, zero), number, zero);
  return e.ir().CreateSelect(isNan(e, number), number, positive);
}

/// A float of any width as bits of another.
Value* floatBits(Emitter& e, const Instruction& i, Value* number, Type to) {
  auto& ir = e.ir();
  const unsigned rounding = roundingOf(i);
  number = saturated(e, i, positivePart(e, i, number));
  const bool narrows = number->getType()->isDoubleTy() && to.bits < 64;
  if (to.kind == Kind::TensorFloat) {
    return e.callSupport("ptx_tf32_bits", ir.getInt32Ty(), {number, ir.getInt32(rounding)});
  }
  if (to.isSmallFloat()) {
    if (rounding == 0 && !narrows && !i.has("satfinite")) return e.bitsOf(number, to);
    Value* bits = halfBits(e, ir.CreateFPExt(number, ir.getDoubleTy()), to, rounding + (i.has("satfinite") ? 16 : 0));
    return bits;
  }
  if (narrows) {
    number = rounding == 0 ? ir.CreateFPTrunc(number, ir.getFloatTy())
                           : e.callSupport("ptx_f64_to_f32", ir.getFloatTy(), {number, ir.getInt32(rounding)});
    number = flushed(e, i, number, to);
  } else if (to.bits == 64) {
    number = ir.CreateFPExt(number, ir.getDoubleTy());
  }
  return e.bitsOf(number, to);
}

void floatToFloat(Emitter& e, const Instruction& i, Type to, Type from) {
  Value* number = flushed(e, i, e.number(i.operands.at(1), from), from);
  if (roundsToWhole(i)) number = wholeNumber(e, i, number);
  e.write(i.operands[0], floatBits(e, i, number, to));
}

/// d = {a, b}: a becomes the upper half.
void packFloats(Emitter& e, const Instruction& i, Type to, Type from) {
  auto& ir = e.ir();
  const Type element = elementOf(to);
  Value* all = nullptr;
  for (const std::size_t operand : {1U, 2U}) {
    Value* number = flushed(e, i, e.number(i.operands.at(operand), from), from);
    Value* bits = nullptr;
    if (to.kind == Kind::E4M3 || to.kind == Kind::E5M2) {
      const char* name = to.kind == Kind::E4M3 ? "ptx_e4m3_bits" : "ptx_e5m2_bits";
      bits = ir.CreateTrunc(e.callSupport(name, ir.getInt32Ty(), {positivePart(e, i, number)}), ir.getInt8Ty());
    } else {
      bits = floatBits(e, i, number, element);
    }
    bits = ir.CreateZExt(bits, ir.getIntNTy(to.bits));
    all = all == nullptr ? ir.CreateShl(bits, element.bits) : ir.CreateOr(all, bits);
  }
  e.write(i.operands[0], all);
}

/// Between two halves and two 8-bit floats.
void convertPair(Emitter& e, const Instruction& i, Type to, Type from) {
  auto& ir = e.ir();
  Value* source = e.bits(i.operands.at(1), from.bits);
  Value* all = ir.getIntN(to.bits, 0);
  for (unsigned n = 0; n < 2; ++n) {
    const Type part = elementOf(from);
    Value* bits = ir.CreateTrunc(ir.CreateLShr(source, n * part.bits), ir.getIntNTy(part.bits));
    Value* result = nullptr;
    if (from.isFloat()) {
      const char* name = to.kind == Kind::E4M3 ? "ptx_e4m3_bits" : "ptx_e5m2_bits";
      result = e.callSupport(name, ir.getInt32Ty(), {positivePart(e, i, e.numberOf(bits, part))});
    } else {
      const char* name = from.kind == Kind::E4M3 ? "ptx_from_e4m3" : "ptx_from_e5m2";
      Value* number = e.callSupport(name, ir.getFloatTy(), {ir.CreateZExt(bits, ir.getInt32Ty())});
      result = e.bitsOf(positivePart(e, i, number), elementOf(to));
    }
    result = ir.CreateZExtOrTrunc(result, ir.getIntNTy(elementOf(to).bits));
    all = ir.CreateOr(all, ir.CreateShl(ir.CreateZExt(result, ir.getIntNTy(to.bits)), n * elementOf(to).bits));
  }
  e.write(i.operands[0], all);
}

/// cvt.pack.sat: two integers, cut to a smaller type, above what is in c.
void packIntegers(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Type to = i.type(0);
  const unsigned width = to.bits;
  Value* all = i.operands.size() > 3 ? e.bits(i.operands[3], 32) : ir.getInt32(0);
  for (const std::size_t operand : {1U, 2U}) {
    Value* value = ir.CreateTrunc(clamped(e, e.bits(i.operands.at(operand), 32), true, to), ir.getIntNTy(width));
    all = ir.CreateOr(ir.CreateShl(all, width), ir.CreateZExt(value, ir.getInt32Ty()));
  }
  e.write(i.operands[0], all);
}

void convert(Emitter& e, const Instruction& i) {
  if (i.has("pack")) return packIntegers(e, i);
  if (i.has("rs")) e.refuse("rounding by random bits");
  if (i.types() < 2) e.refuse("a conversion of one type");
  const Type to = i.type(0);
  const Type from = i.type(1);
  const auto small = [](Type type) { return type.kind == Kind::E4M3 || type.kind == Kind::E5M2; };
  if (to.packed == 2 && from.packed == 1) return packFloats(e, i, to, from);
  if (small(to) || small(from)) return convertPair(e, i, to, from);
  if (to.packed != 1 || from.packed != 1) e.refuse("this conversion");
  if (!to.isFloat()) return from.isFloat() ? floatToInteger(e, i, to, from) : integerToInteger(e, i, to, from);
  return from.isFloat() ? floatToFloat(e, i, to, from) : integerToFloat(e, i, to, from);
}

}  // namespace

void addConvertInstructions(Handlers& handlers) {
  handlers["cvt"] = convert;
}

}  // namespace tutti::softgpu::ptx
