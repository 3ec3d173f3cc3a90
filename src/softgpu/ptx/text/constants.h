// Constant expressions: `(3 + 4) * 2 - 0x10`, as in C.
#pragma once

#include "softgpu/ptx/text/words.h"

namespace tutti::softgpu::ptx {

/// A number, or an expression of integers, which may begin with a sign or a bracket. Throws TextError.
NumberOperand parseConstant(Words& words);
/// The same, where only an integer will do.
std::int64_t parseIntegerConstant(Words& words);

}  // namespace tutti::softgpu::ptx
