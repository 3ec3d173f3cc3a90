// What can be put into a stream or a graph, as values; makeTask (softgpu/device/tasks.h) turns one into work
// for an engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <variant>
#include <vector>

#include "device/simt/simt_host_abi.h"
#include "softgpu/exec/task.h"
#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

class Context;
class Event;
class Graph;

/// Copies `height` rows of `width` bytes.
struct CopyOperation {
  char* destination = nullptr;
  const char* source = nullptr;
  std::size_t width = 0;
  std::size_t height = 1;
  std::size_t destinationPitch = 0;
  std::size_t sourcePitch = 0;
  std::shared_ptr<std::vector<char>> staging;  ///< keeps the source alive when it is a copy of pageable memory
};

/// Writes `value` into `height` rows of `width` elements of 1, 2 or 4 bytes.
struct FillOperation {
  char* destination = nullptr;
  std::uint32_t value = 0;
  unsigned elementBytes = 1;
  std::size_t width = 0;
  std::size_t height = 1;
  std::size_t pitch = 0;
};

/// Calls a host function on the device's callback thread.
struct HostOperation {
  CUhostFn function = nullptr;
  void* data = nullptr;
};

struct RecordOperation {
  std::shared_ptr<Event> event;
};

struct WaitOperation {
  std::shared_ptr<Event> event;
};

/// Waits for, or writes, one word of memory.
struct WordOperation {
  void* address = nullptr;
  std::uint64_t value = 0;
  bool wide = false;  ///< 64 bits, else 32
  bool write = false;
  unsigned flags = 0;  ///< CU_STREAM_WAIT_VALUE_*
};

/// Parameters of a kernel, which its blocks share.
using KernelParams = std::shared_ptr<const std::max_align_t[]>;
/// A copy of `bytes` at `source`, which is not looked at if there are none.
inline KernelParams copyParams(const void* source, std::size_t bytes) {
  auto copy = std::make_shared_for_overwrite<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 1);
  if (bytes != 0) std::memcpy(copy.get(), source, bytes);
  return copy;
}

/// What a launch of GPU code has besides: up to three dimensions, and variables.
struct CodeLaunch {
  simt::HostShape shape = {};
  void* variables = nullptr;
  std::uint32_t workspace[4] = {};    ///< HostShape::workspace points here where the launch is cooperative
  std::shared_ptr<const void> owner;  ///< keeps code and variables
};

struct KernelOperation {
  const simt::HostKernel* kernel = nullptr;
  KernelParams params;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;
  std::uint32_t dynamicSharedBytes = 0;
  std::shared_ptr<const CodeLaunch> code;  ///< null: one dimension and no variables
  std::shared_ptr<Event> begun = {};       ///< recorded when the last block begins; null: nobody asks

  simt::HostShape shape() const {
    return code != nullptr ? code->shape : simt::HostShape{{threads, 1, 1}, {blocks, 1, 1}, dynamicSharedBytes};
  }
  void* variables() const { return code != nullptr ? code->variables : nullptr; }
  std::size_t sharedBytes() const { return std::size_t{kernel->staticSharedBytes} + dynamicSharedBytes; }
};

struct FreeOperation {
  std::uintptr_t base = 0;
};

struct EmptyOperation {};

/// A whole graph as one step.
struct GraphOperation {
  std::shared_ptr<const Graph> graph;
};

using Operation = std::variant<EmptyOperation, CopyOperation, FillOperation, HostOperation, RecordOperation,
                               WaitOperation, WordOperation, KernelOperation, FreeOperation, GraphOperation>;

}  // namespace tutti::softgpu
