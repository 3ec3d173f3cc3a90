// Kernels compiled for the host, registered by softgpuRegisterKernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/simt/simt_host_abi.h"

namespace tutti::softgpu {

struct Module;

/// A CUfunction (and CUkernel).
struct Function {
  const simt::HostKernel* kernel = nullptr;
  Module* module = nullptr;
  int dynamicSharedLimit = 48 << 10;
};

/// A CUmodule (and CUlibrary).
struct Module {
  std::map<std::string, std::unique_ptr<Function>> functions;
};

}  // namespace tutti::softgpu
