// Reads PTX text.
#pragma once

#include <string_view>

#include "softgpu/ptx/text/program.h"

namespace tutti::softgpu::ptx {

/// The program that `text` is. Throws TextError where it is not one. Instructions are not looked into: whether one is
/// known shows when it is translated.
Program parseProgram(std::string_view text);

}  // namespace tutti::softgpu::ptx
