// What a kernel is translated from.
#pragma once

#include "softgpu/ptx/text/program.h"
#include "softgpu/ptx/translate/layout.h"
#include "softgpu/ptx/translate/reach.h"

namespace tutti::softgpu::ptx {

/// Refers to what others own.
struct KernelSource {
  const Program& program;
  const VariableLayout& layout;
  const KernelReach& reach;  ///< of the kernel
  bool weakMemory = false;   ///< see PtxOptions
};

}  // namespace tutti::softgpu::ptx
