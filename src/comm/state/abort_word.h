// The word through which kernels hear of an abort.
#pragma once

#include <cstdint>
#include <memory>

#include "base/ranks/abort.h"
#include "base/status.h"
#include "gpu/memory.h"

namespace tutti::comm {

/// The word in pinned memory that kernels poll, tied to an Abort while it lives.
class AbortWord {
 public:
  static Result<std::unique_ptr<AbortWord>> create(const gpu::Device& device, Abort& abort);
  AbortWord(const AbortWord&) = delete;
  ~AbortWord();
  const std::uint32_t* onDevice() const { return reinterpret_cast<const std::uint32_t*>(memory_.onDevice()); }

 private:
  AbortWord(gpu::PinnedBuffer memory, Abort& abort) : memory_(std::move(memory)), abort_(abort) {}
  std::uint32_t* word() const { return reinterpret_cast<std::uint32_t*>(memory_.host()); }
  gpu::PinnedBuffer memory_;
  Abort& abort_;
};

}  // namespace tutti::comm
