// Arithmetic that instructions of several kinds have in common.
#pragma once

#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {

// Integers.
Value* integerSum(Emitter& e, const Instruction& i, Value* a, Value* b, Type type);
void integerMultiply(Emitter& e, const Instruction& i);
void integerMultiplyAdd(Emitter& e, const Instruction& i);
Value* integerQuotient(Emitter& e, Value* a, Value* b, Type type);

// Floats. The type is that of one element; halves come as float.
/// What an instruction with `.ftz` makes of a denormal number: zero with its sign.
Value* flushed(Emitter& e, const Instruction& i, Value* number, Type type);
/// `.sat`: between 0 and 1, 0 for what is no number.
Value* saturated(Emitter& e, const Instruction& i, Value* number);
Value* isNan(Emitter& e, Value* number);
/// The NaN that GPUs make.
Value* canonicalNan(Emitter& e, Value* likeThis);
/// Rounds to a whole number by `.rni`, `.rzi`, `.rmi` or `.rpi`; as it is if there is none of them.
Value* wholeNumber(Emitter& e, const Instruction& i, Value* number);
/// The number of a rounding mode for functions of support.h; of the nearest, which is LLVM's own, 0.
unsigned roundingOf(const Instruction& i);
/// Bits of a half of one of the two forms, rounded from a double.
Value* halfBits(Emitter& e, Value* asDouble, Type type, unsigned rounding);
Value* smallerOf(Emitter& e, const Instruction& i, Value* a, Value* b, bool larger);

}  // namespace tutti::softgpu::ptx
