// Which launch of a communicator is the first one that has not ended, and whether the device has begun with it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/status.h"
#include "comm/launch/launched_call.h"
#include "comm/launch/prepared_launch.h"
#include "device/work.h"
#include "gpu/memory.h"

namespace tutti::comm {

/// Kernels write as they begin and end (device::KernelMarks), a word each time. Launches on one thread, asked by any.
class LaunchMarks {
 public:
  struct Front {
    enum class State : std::uint8_t {
      Unknown,  ///< it was not remembered, or nothing is known of those before it
      Ended,    ///< all have ended
      Queued,   ///< all before it have ended, and the device has not begun with it: something else is in front of it
      Begun,    ///< the device has begun with it
    };
    State state = State::Unknown;
    LaunchedCall call;
    std::uint64_t order = 0;  ///< that launches of the whole process have, in the order of the calls
    CUstream stream = nullptr;
  };

  /// The device must outlive the result. Errors: no memory.
  static Result<std::unique_ptr<LaunchMarks>> create(const gpu::Device& device);
  LaunchMarks(const LaunchMarks&) = delete;
  ~LaunchMarks();

  /// Whether another communicator of this process has marks on the same device. Any thread.
  bool severalHere() const;

  /// `launches` come next on `stream`, and are `call`: their kernels are told to write marks.
  void add(CUstream stream, const LaunchedCall& call, std::span<const PreparedLaunch> launches);
  /// A launch that a graph has captured: who replays it and when is not known.
  void captured() { captured_.store(true, std::memory_order_relaxed); }
  /// What was added was not launched, or not all of it: nothing more is known.
  void giveUp();

  /// Never waits. Any thread.
  Front front();

 private:
  /// Launches that can be queued before later ones are not remembered.
  static constexpr std::size_t kMost = 256;
  /// Kernels of one launch.
  struct Mark {
    std::uint64_t first = 0;  ///< numbers
    std::uint64_t last = 0;
    unsigned firstChannel = 0;  ///< of the last kernel
    unsigned channels = 0;
    LaunchedCall call;
    std::uint64_t order = 0;
    CUstream stream = nullptr;
  };

  LaunchMarks(const gpu::Device& device, gpu::PinnedBuffer memory);
  device::KernelMarks* written() const { return reinterpret_cast<device::KernelMarks*>(memory_.host()); }
  bool ended(const Mark& mark) const;
  bool begun(const Mark& mark) const;
  /// Forgets those that have ended.
  void forgetEnded();

  std::atomic<int>* neighbours_;  ///< communicators with marks on this device
  std::atomic<bool> captured_{false};
  const gpu::PinnedBuffer memory_;
  std::mutex mutex_;  ///< the rest; held for a moment only
  bool given_ = false;
  Mark latest_;                  ///< remembered or not
  std::uint64_t endedUpTo_ = 0;  ///< the number of a kernel
  std::array<Mark, kMost> marks_;
  std::size_t oldest_ = 0;  ///< launches, modulo kMost …
  std::size_t next_ = 0;    ///< … of marks_
};

}  // namespace tutti::comm
