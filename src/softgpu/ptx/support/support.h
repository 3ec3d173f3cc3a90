// Functions that translated code calls, by name.
#pragma once

#include <span>

namespace tutti::softgpu::ptx {

struct SupportFunction {
  const char* name;
  void* address;
};
/// All of them, from every file of this folder.
std::span<const SupportFunction> supportFunctions();

}  // namespace tutti::softgpu::ptx
