// Says what an operation that does not end waits for, and who holds it up.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/settings/stall_limits.h"

namespace tutti::bootstrap {
class Bootstrap;
}
namespace tutti::gpu {
class Device;
}
namespace tutti::proxy {
class ProgressTask;
}
namespace tutti::topo {
struct PeerInfo;
}

namespace tutti::comm {

class AwaitedPeers;
class CallLog;
class ChannelSet;
class Launcher;
class RankRelays;
class StallBoard;
struct RankState;

/// What a probe looks at. All of it must outlive the probe.
struct StallSubject {
  int rank = 0;
  int nRanks = 1;
  std::string who;  ///< the communicator's rank, host and device, for messages
  const gpu::Device& device;
  bootstrap::Bootstrap& bootstrap;
  const ChannelSet& channels;
  const Launcher& launcher;
  const RankRelays* relays;  ///< null: nobody sends through this rank
  std::span<const topo::PeerInfo> peers;
  const CallLog& calls;                        ///< the collectives that this rank has called
  StallBoard& board;                           ///< what peers say of themselves
  const std::atomic<const char*>& connecting;  ///< the operation whose call waits to be connected; null: none does
  const AwaitedPeers& awaited;                 ///< whom that waits for
  /// Drives this rank's part of collectives that run in the network, which is made later than the probe; null: it has
  /// none.
  std::function<const proxy::ProgressTask*()> collNet;
};

/// What is known of other communicators' calls that an operation waits for (comm/diagnosis/circles.h).
struct CircleNews {
  bool several = false;  ///< there may be such
  bool closed = false;   ///< they wait in a circle
  std::string text;      ///< as describeCircle(); empty: nothing
};

/// Of one communicator with peers. All members are called by the watch's thread (comm/ending/watch.h), which never
/// waits: everything here is begun in one tick and looked after in later ones.
class StallProbe {
 public:
  /// Where an operation may stay without progress for ever, what is asked of it is answered all the same.
  static Result<std::unique_ptr<StallProbe>> create(const StallSubject& subject, StallLimits limits);
  virtual ~StallProbe() = default;

  /// Four times a second. `kernelsRun`: the last launch has not ended.
  virtual void tick(SteadyClock::time_point now, bool kernelsRun) = 0;

  /// Somebody wants to know. The answer comes with a later tick, within seconds.
  virtual void inquire() = 0;
  virtual bool pending() const = 0;
  /// One line per fact; empty before the first answer.
  virtual std::vector<std::string> takeAnswer() = 0;

  /// Somebody wants to see what it waits for: for the next two seconds its counters are read, stalled or not.
  virtual void watch(SteadyClock::time_point now) = 0;
  /// How long nothing has moved of what is under way, since it was read for the first time; 0: nothing was read.
  virtual milliseconds unmoved(SteadyClock::time_point now) const = 0;

  /// Something has been under way for the limit: worth a look at what is in front of it.
  virtual bool suspects(SteadyClock::time_point now) const = 0;
  /// It was found not to move.
  virtual bool still() const = 0;
  /// What it would say of itself.
  virtual RankState standing(SteadyClock::time_point now) const = 0;
  /// After each tick: a report tells it, a circle also where the report was made before it was found.
  virtual void heed(const CircleNews& news, SteadyClock::time_point now) = 0;
};

}  // namespace tutti::comm
