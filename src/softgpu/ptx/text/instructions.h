// Instructions and their operands.
#pragma once

#include "softgpu/ptx/text/words.h"

namespace tutti::softgpu::ptx {

/// An instruction that may begin with a predicate.
Instruction parseInstruction(Words& words);
/// One whose opcode was taken already.
Instruction parseInstruction(Words& words, const Token& opcode);

}  // namespace tutti::softgpu::ptx
