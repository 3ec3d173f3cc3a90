// What profilers hear of the channels of kernels: the events KernelCh.
//
// Kernels write when each of their channels began and ended with an operation (device::Stamp); a thread looks at that
// and tells. It runs from the first launch of which somebody wants to hear so, and sleeps while none is under way.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "base/threads/thread.h"
#include "comm/launch/stamps.h"
#include "plugin/profiler.h"

namespace tutti::comm {

/// A channel that will work for an operation.
struct ExpectedChannel {
  int channel = 0;
  std::size_t stamp = 0;   ///< of Stamps
  void* parent = nullptr;  ///< handle of the operation's own event
  void* handle = nullptr;  ///< of its event; filled by ChannelEvents, as the rest
  enum class Stage : std::uint8_t { Waits, Works, Over } stage = Stage::Waits;
};

/// The channels of one communicator's kernels. Any thread.
class ChannelEvents {
 public:
  ChannelEvents() : pool_(std::make_shared<StampPool>()) {}
  ChannelEvents(const ChannelEvents&) = delete;
  ChannelEvents& operator=(const ChannelEvents&) = delete;
  ~ChannelEvents() { close(); }

  /// For the kernels of one plan. Starts the thread, if it does not run. Errors: the driver's, the system's.
  Result<std::unique_ptr<Stamps>> stamps(const gpu::Device& device, std::size_t count);
  /// Kernels that write `stamps`, which are 0, are about to run: in the order in which this is called. `sink` hears of
  /// them. Never waits for kernels.
  void expect(std::shared_ptr<plugin::EventSink> sink, std::shared_ptr<const Stamps> stamps,
              std::vector<ExpectedChannel> channels);
  /// They have run with these stamps, and are about to do so again: what they wrote is told, and 0 again.
  void tellBeforeReplay(const Stamps& stamps);
  /// The kernels are over, or given up: tells what is left to tell, frees the stamps. Nothing is told any more.
  void close();

 private:
  /// The channels of one plan that was launched, or replayed.
  struct Launched {
    std::shared_ptr<plugin::EventSink> sink;
    std::shared_ptr<const Stamps> stamps;
    std::vector<ExpectedChannel> channels;
    std::size_t over = 0;
  };
  static void begin(Launched& launched, ExpectedChannel& channel, std::uint64_t when);
  static void end(Launched& launched, ExpectedChannel& channel, std::uint64_t when);
  /// Tells what is new; whether any has begun.
  static bool look(Launched& launched);
  /// The same of all that are under way. `mutex_` is held.
  bool lookAtAll();
  /// What has begun ends.
  static void giveUp(Launched& launched);
  void takeIncoming();
  /// Returns at the end.
  void run();
  /// Until there may be something to see; false: it is the end. `idle`: nothing is under way.
  bool sleep(bool idle, std::chrono::microseconds most);

  const std::shared_ptr<StampPool> pool_;
  std::mutex incomingMutex_;  ///< incoming_, thread_, closed_; held for a moment only
  std::condition_variable wake_;
  std::vector<Launched> incoming_;
  bool sleeps_ = false;
  bool closed_ = false;
  Thread thread_;
  std::mutex mutex_;  ///< underWay_; held while a profiler is told
  std::deque<Launched> underWay_;
};

}  // namespace tutti::comm
