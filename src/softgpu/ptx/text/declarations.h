// Declarations of variables, registers and parameters.
#pragma once

#include <vector>

#include "softgpu/ptx/text/words.h"

namespace tutti::softgpu::ptx {

struct Linkage {
  bool external = false;
};
/// `.visible`, `.weak`, `.extern`, `.common`, whichever stand there.
Linkage parseLinkage(Words& words);
/// `.global .align 4 .b8 name[8] = {…}, other;`; `.reg .b32 %r<3>;` declares %r0 to %r2.
std::vector<Variable> parseDeclaration(Words& words, Linkage linkage = {});
/// `(.param .b32 a, .reg .f32 b)`
std::vector<Variable> parseParameters(Words& words);

}  // namespace tutti::softgpu::ptx
