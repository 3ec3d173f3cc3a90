// Machine code of kernels: made by LLVM, kept on disk.
#pragma once

#include <memory>
#include <string>

#include "device/simt/simt_host_abi.h"
#include "softgpu/ptx/text/program.h"
#include "softgpu/ptx/translate/source.h"

namespace tutti::softgpu::ptx {

/// What cannot be made, in a sentence.
struct CodeError {
  std::string what;
};

/// Addresses of a kernel's functions.
struct KernelCode {
  void (*thread)(simt::HostThread* self, const void* params) = nullptr;
  void (*block)(simt::HostThread* self, const void* params) = nullptr;  ///< null where threads wait for one another
};

/// The code of one program's kernels, which lives as long as this. One thread at a time.
class Code {
 public:
  /// `textSum`: sha256() of the program's text. What is compiled is kept in `cacheFolder`; empty: nowhere.
  Code(std::string textSum, std::string cacheFolder);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// Throws TextError and CodeError.
  KernelCode compile(const KernelSource& source, const Function& kernel);

 private:
  struct Jit;
  std::unique_ptr<Jit> jit_;
  std::string textSum_;
};

}  // namespace tutti::softgpu::ptx
