// When kernels ran on the device, for a trace: events before and after them, read later.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/launch/prepared_launch.h"
#include "comm/launch/stamps.h"
#include "gpu/context.h"
#include "gpu/event.h"
#include "gpu/stream.h"
#include "trace/format.h"

namespace tutti::comm {

/// Has `channels`, whose times are the device's, and `whole`, what the host knows of their kernels, agree. Where the
/// device's clock is the host's, as on the software GPU, it knows better when the kernels ran than events do; else the
/// first channel is taken to have begun with them. `asked`: before they could begin; `now`: after they have ended.
void placeChannels(std::span<trace::Record> channels, trace::Record& whole, std::uint64_t asked, std::uint64_t now);

/// When to try again what could not be had in time: after a second, and then after twice as long each time, up to a
/// minute. In nanoseconds. One thread.
class AnchorRetries {
 public:
  bool due(std::uint64_t now) const { return now >= next_; }
  void missed(std::uint64_t now) {
    next_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  std::uint64_t next() const { return next_; }

 private:
  static constexpr std::uint64_t kLongestPause = 60'000'000'000;
  std::uint64_t pause_ = 1'000'000'000;  ///< after the next miss
  std::uint64_t next_ = 0;
};

/// The launches of one communicator, about 250 a second at most: events cost the device more than a short
/// operation should pay every time. Their kernels write when each channel worked, unless a profiler has them do so.
/// While the device is too busy to be asked for its time, nothing is timed. Failures are told once, and then nothing is
/// timed any more: a trace is not worth an operation. Any thread, but begin() and end() on the one that launches.
class KernelTimes {
 public:
  /// The device must outlive the result.
  explicit KernelTimes(const gpu::Device& device) : device_(&device), pool_(std::make_shared<StampPool>()) {}
  KernelTimes(const KernelTimes&) = delete;
  ~KernelTimes() { pool_->close(); }

  /// `launches`, which come on `stream` from here on, are to be timed, unless it is too soon after the last ones. Its
  /// context is current.
  void begin(CUstream stream, std::span<const PreparedLaunch> launches);
  /// What came since begin() is launch `number` of the trace's communicator `comm`, and the `launches` - 1 after it.
  void end(CUstream stream, std::uint16_t comm, std::uint32_t number, std::size_t launches);
  /// Writes those that are done. Never waits. The device's context is current.
  void harvest();

 private:
  static constexpr std::size_t kUnderWay = 32;
  /// A launch whose kernel writes stamps.
  struct Stamped {
    std::size_t launch = 0;  ///< of those that are timed together
    std::size_t first = 0;   ///< stamp
    unsigned firstChannel = 0;
    unsigned channels = 0;
    std::size_t each = 0;  ///< stamps of a channel
  };
  struct Timed {
    std::optional<gpu::Event> before;
    std::optional<gpu::Event> after;
    std::uint64_t asked = 0;  ///< by the host's clock, when `before` was recorded
    std::uint16_t comm = 0;
    std::uint32_t number = 0;
    std::size_t launches = 0;
    std::vector<Stamped> stamped;
    std::unique_ptr<Stamps> stamps;  ///< of these
  };
  /// Both: whether there is an anchor that is new enough.
  Result<bool> prepare();
  Result<bool> anchor();
  void correct(const Timed& one, double began, double ended);
  std::uint64_t at(double seconds) const;
  Status beginOne(CUstream stream, std::span<const PreparedLaunch> launches);
  Status stamp(Timed& one, std::span<const PreparedLaunch> launches);
  /// When each channel worked, by the device's clock.
  static std::vector<trace::Record> channelsOf(const Timed& one);
  /// `whole` says when the kernels ran; and their channels.
  static void write(const Timed& one, trace::Record whole);
  Status endOne(CUstream stream);
  Status harvestAll();
  /// Gives up where that is no success.
  void heed(Status status);

  const gpu::Device* device_;
  const std::shared_ptr<StampPool> pool_;
  std::mutex mutex_;  ///< the rest
  bool given_ = false;
  bool begun_ = false;
  std::uint64_t lastBegin_ = 0;
  std::optional<gpu::Stream> own_;
  std::optional<gpu::Event> anchor_;  ///< a moment that the host's clock knows as well …
  std::uint64_t anchoredAt_ = 0;      ///< … as this
  AnchorRetries retries_;
  std::array<Timed, kUnderWay> timed_;
  std::uint64_t first_ = 0;  ///< oldest under way
  std::uint64_t next_ = 0;
};

}  // namespace tutti::comm
