// What profilers hear of the channels of kernels: the events KernelCh.
//
// Kernels write when each of their channels began and ended with an operation (device::Stamp); a thread looks at that
// and tells. It runs from the first launch of which somebody wants to hear so, and sleeps soon after the last.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "base/threads/thread.h"

namespace tutti::gpu {
class Device;
}
namespace tutti::plugin {
class EventSink;
}

namespace tutti::comm {

class StampPool;
class Stamps;

/// A channel that will work for an operation.
struct ExpectedChannel {
  int channel = 0;
  std::size_t stamp = 0;   ///< of Stamps
  void* parent = nullptr;  ///< handle of the operation's own event
  void* handle = nullptr;  ///< of its event; filled by ChannelEvents, as the rest
  enum class Stage : std::uint8_t { Waits, Works, Over } stage = Stage::Waits;
};

/// The channels of one plan's kernels, and where these write when they work.
struct StampedLaunch {
  StampedLaunch();
  ~StampedLaunch();

  std::unique_ptr<Stamps> stamps;
  std::vector<ExpectedChannel> channels;    ///< filled by who launches …
  std::shared_ptr<plugin::EventSink> sink;  ///< … as is this: who hears of them
  std::size_t over = 0;                     ///< channels
};

/// The channels of one communicator's kernels. Any thread.
class ChannelEvents {
 public:
  ChannelEvents();
  ChannelEvents(const ChannelEvents&) = delete;
  ChannelEvents& operator=(const ChannelEvents&) = delete;
  ~ChannelEvents() { close(); }

  /// For the kernels of one plan, with at least so many stamps, which are 0, and nothing else. Starts the thread, if it
  /// does not run. Errors: the driver's, the system's.
  Result<std::shared_ptr<StampedLaunch>> take(const gpu::Device& device, std::size_t stamps);
  /// These kernels are about to run: in the order in which this is called. Only its owner for replays keeps `launched`.
  /// Never waits for kernels.
  void expect(std::shared_ptr<StampedLaunch> launched);
  /// They have run, and are about to be replayed: what they wrote is told, and all is 0 again.
  void tellBeforeReplay(StampedLaunch& launched);
  /// The kernels are over, or given up: tells what is left to tell, frees the stamps. Nothing is told any more.
  void close();

 private:
  static void begin(StampedLaunch& launched, ExpectedChannel& channel, std::uint64_t when);
  static void end(StampedLaunch& launched, ExpectedChannel& channel, std::uint64_t when);
  /// Tells what is new; whether any has begun.
  static bool look(StampedLaunch& launched);
  /// The same of all that are under way. `mutex_` is held.
  bool lookAtAll();
  /// What has begun ends.
  static void giveUp(StampedLaunch& launched);
  void takeIncoming();
  /// It is over, and others may use it again.
  void putAway(const std::shared_ptr<StampedLaunch>& launched);
  /// Returns at the end.
  void run();
  /// Until there may be something to see; false: it is the end. `idle`: nothing has been for a while.
  bool sleep(bool idle, std::chrono::microseconds most);

  const std::shared_ptr<StampPool> pool_;
  std::mutex incomingMutex_;  ///< down to thread_; held for a moment only
  std::condition_variable wake_;
  std::deque<std::shared_ptr<StampedLaunch>> incoming_;
  std::map<std::size_t, std::vector<std::shared_ptr<StampedLaunch>>> spare_;  ///< nobody's, by the room of their stamps
  bool sleeps_ = false;
  bool closed_ = false;
  Thread thread_;
  std::mutex mutex_;  ///< the rest; held while a profiler is told
  std::deque<std::shared_ptr<StampedLaunch>> underWay_;
};

}  // namespace tutti::comm
