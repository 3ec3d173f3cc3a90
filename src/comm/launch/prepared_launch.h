// A kernel that is ready to be launched, as plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "comm/launch/launch_note.h"
#include "gpu/driver.h"

namespace tutti::device {
struct KernelArgs;
}

namespace tutti::comm {

/// Hears of kernels as they are launched, on the thread that does it.
class LaunchListener {
 public:
  virtual ~LaunchListener() = default;
  /// The first kernel of several comes next on `stream`, after all that it has to wait for. `captured`: unless null,
  /// the graph that takes the launch. Errors: of what the listener puts on the stream; nothing is launched then.
  virtual Status first(CUstream stream, CUgraph captured) = 0;
  /// What after() is given.
  virtual void* before(CUstream stream) = 0;
  /// The driver has taken the kernel, or refused it.
  virtual void after(void* launch) = 0;
};

/// One kernel, ready to go. `args` and the names are only used during launch(), which may have the kernel write stamps.
struct PreparedLaunch {
  CUfunction function = nullptr;
  std::string_view operation;  ///< "AllReduce", for errors
  unsigned grid = 1;           ///< blocks: channels
  unsigned block = 32;         ///< threads per block
  device::KernelArgs* args = nullptr;
  std::string_view kernel = {};  ///< "tutti_AllReduce_Ring_Simple_Sum_f32", for errors
  LaunchShape shape = {};
  std::uint32_t traced = 0;            ///< the kernel's name in a trace
  LaunchListener* listener = nullptr;  ///< null: nobody listens
};

}  // namespace tutti::comm
