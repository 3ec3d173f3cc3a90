// GPU code as libsoftgpu-ptx.so has read it. That library is loaded at the first image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "softgpu/memory/cuda_types.h"
#include "softgpu/ptx_library.h"

namespace tutti::softgpu {

struct PtxLibrary;

/// Why something is not possible: an error for programs, a sentence for people.
struct CodeFailure {
  CUresult error = CUDA_SUCCESS;
  std::string why;
};

/// One image. Any thread.
class PtxCode {
 public:
  /// Reads `image` for devices of `capability` (90 for 9.0); `bytes` is 0 where nobody knows. The image may go
  /// afterwards. Null, and what is wrong in `failure`, where it cannot be read.
  static std::shared_ptr<PtxCode> read(const void* image, std::size_t bytes, int capability, CodeFailure* failure);
  PtxCode(const PtxLibrary& library, const PtxProgram& program) : library_(library), program_(program) {}
  ~PtxCode();
  PtxCode(const PtxCode&) = delete;
  PtxCode& operator=(const PtxCode&) = delete;

  const PtxProgram& program() const { return program_; }
  /// What runs function `index`; made at the first call, which takes a while, and there as long as this object. Null
  /// where it cannot be made.
  const simt::HostKernel* kernel(std::uint32_t index, std::string* why) const;

 private:
  const PtxLibrary& library_;
  const PtxProgram& program_;
};

}  // namespace tutti::softgpu
