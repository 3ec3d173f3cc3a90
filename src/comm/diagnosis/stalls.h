// Says what an operation that does not end waits for, and who holds it up.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/diagnosis/counter_snapshot.h"
#include "comm/diagnosis/diagnosis.h"
#include "comm/diagnosis/progress_scan.h"
#include "comm/diagnosis/stall_clock.h"
#include "comm/diagnosis/stall_state.h"
#include "topo/machine/peer_info.h"

namespace tutti::bootstrap {
class Bootstrap;
}
namespace tutti::gpu {
class Device;
}

namespace tutti::comm {

class ChannelSet;
class Launcher;
class RankRelays;

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
  StallBoard& board;                           ///< what peers say of themselves
  const std::atomic<const char*>& connecting;  ///< the operation whose call waits to be connected; null: none does
};

/// Of one communicator with peers. All members are called by the watch's thread (comm/ending/watch.h), which never
/// waits: everything here is begun in one tick and looked after in later ones.
class StallProbe {
 public:
  using Time = SteadyClock::time_point;

  /// `limit`: how long an operation may stay without progress before it is reported; 0: for ever. What is asked of it
  /// is answered all the same.
  static Result<std::unique_ptr<StallProbe>> create(const StallSubject& subject, milliseconds limit);

  /// Four times a second. `kernelsRun`: the last launch has not ended.
  void tick(Time now, bool kernelsRun);

  /// Somebody wants to know. The answer comes with a later tick, within seconds.
  void inquire() { inquired_ = true; }
  bool pending() const { return inquired_; }
  /// One line per fact; empty before the first answer.
  std::vector<std::string> takeAnswer() { return std::exchange(answer_, {}); }

 private:
  StallProbe(const StallSubject& subject, milliseconds limit, std::unique_ptr<CounterReader> reader,
             MovementSweep sweep)
      : at_(subject), clock_(limit), reader_(std::move(reader)), sweep_(std::move(sweep)) {}
  void rest(Time now);
  void look(Time now);
  void read(Time now);
  void took(Time now, std::uint64_t fingerprint, bool deaf);
  void ask(Time now);
  void conclude(Time now);
  void say(Time now, bool asks);
  bool confirmed(Time now);
  bool fresh(Time now) const;
  bool answered() const;
  RankState state(Time now) const;
  void noteWaits(RankState& own) const;
  void noteHolds(RankState& own) const;
  std::string headline(const RankState& own) const;
  Diagnosis verdict(const RankState& own) const;
  std::vector<std::string> waits() const;
  std::vector<std::string> underWay() const;
  std::string peerText(int rank) const;
  void warnOnce(const std::string& head, const std::string& verdict, const std::vector<std::string>& waits) const;

  const StallSubject at_;
  StallClock clock_;
  std::unique_ptr<CounterReader> reader_;
  MovementSweep sweep_;
  bool kernelsRun_ = false;
  const char* connecting_ = nullptr;  ///< in a call of that name, which waits for peers
  bool stalled_ = false;              ///< found to be, with all that could move
  bool deaf_ = false;                 ///< the device does not let itself be read
  std::optional<Time> begunAt_;       ///< of a reading under way
  std::optional<Time> readAt_;
  std::optional<Time> askedAt_;  ///< others are being asked since then
  Time saidAt_{};
  Time notBefore_{};   ///< others are not asked again
  bool owes_ = false;  ///< others have asked
  bool inquired_ = false;
  std::vector<std::string> answer_;
};

}  // namespace tutti::comm
