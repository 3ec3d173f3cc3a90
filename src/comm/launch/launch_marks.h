// Which launch of a communicator is the first one that has not ended, and whether the device has begun with it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/event.h"

namespace tutti::comm {

/// What a launch is, for people.
struct LaunchedCall {
  std::uint64_t number = 0;   ///< of its last collective, among all of the communicator
  std::uint8_t function = 0;  ///< ApiFunc (comm/plan/op.h) of its first operation
  bool messages = false;      ///< it has sends and receives only, which have no number
};

/// Events before and after the latest launches of one communicator, as far as they have not ended. Events cost the
/// device something, so nothing is marked while the communicator is alone on its device: nobody else's kernels can be
/// in front of its own then. A failure of the driver is told once, and then nothing is marked any more. Launches on one
/// thread, asked by any.
class LaunchMarks {
 public:
  struct Front {
    enum class State : std::uint8_t {
      Unknown,  ///< it was not marked, or nothing is known of those before it
      Ended,    ///< all have ended
      Queued,   ///< all before it have ended, and the device has not begun with it: something else is in front of it
      Begun,    ///< the device has passed everything in front of it
    };
    State state = State::Unknown;
    LaunchedCall call;
    std::uint64_t order = 0;  ///< that launches of the whole process have, in the order of the calls
    CUstream stream = nullptr;
  };

  /// The device must outlive it.
  explicit LaunchMarks(const gpu::Device& device);
  LaunchMarks(const LaunchMarks&) = delete;
  ~LaunchMarks();

  /// Whether another communicator of this process has marks on the same device. Any thread.
  bool severalHere() const;

  /// What comes on `stream` from here on is that launch, whose end end() marks. The device's context is current.
  void begin(CUstream stream, const LaunchedCall& call);
  void end();
  /// A launch that a graph has captured: who replays it and when is not known.
  void captured() { captured_.store(true, std::memory_order_relaxed); }

  /// Never waits, logs nothing. Any thread.
  Front front() const;
  /// What was launched last, marked or not; nothing of graphs. Any thread.
  LaunchedCall last() const;

 private:
  /// Launches that can be queued before later ones go without a mark.
  static constexpr std::size_t kMarks = 64;
  struct Mark {
    std::optional<gpu::Event> before;
    std::optional<gpu::Event> after;
    std::uint64_t launch = 0;  ///< which of this communicator's, from 1; 0: it marks none
    bool closed = false;       ///< `after` was recorded
    LaunchedCall call;
    std::uint64_t order = 0;
    CUstream stream = nullptr;
  };
  /// A mark as front() looks at it.
  struct Seen {
    std::size_t place = 0;
    std::uint64_t launch = 0;
    CUevent before = nullptr;
    CUevent after = nullptr;
  };
  using Sights = std::array<Seen, kMarks>;

  std::optional<std::size_t> freePlace();
  Status open(Mark& mark, CUstream stream);
  void heed(Status status);
  std::size_t list(Sights& sights) const;
  Front ask(const Sights& sights, std::size_t count) const;
  Front queued(const Seen& first, std::uint64_t endedBefore) const;
  Front describe(const Seen& seen, Front::State state) const;

  const gpu::Device* device_;
  std::atomic<int>* neighbours_;  ///< communicators with marks on this device
  std::atomic<bool> captured_{false};
  mutable std::mutex mutex_;  ///< the rest; held while an event is recorded, never while the driver is asked
  bool given_ = false;
  std::uint64_t launches_ = 0;
  LaunchedCall last_;
  std::array<Mark, kMarks> marks_;
  Mark* open_ = nullptr;
};

}  // namespace tutti::comm
