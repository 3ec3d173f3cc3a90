// Takes the steps of one set of lanes to the network, and what comes back to the lanes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/collnet_view.h"
#include "device/direction.h"
#include "proxy/step_events.h"
#include "transport/collnet/call.h"
#include "transport/collnet/path.h"
#include "transport/net/lane/tally.h"

namespace tutti::net {
class UserRegistrations;
}
namespace tutti::plugin {
class CollNet;
}

namespace tutti::collnet {

class StepMemory;
struct StepSlots;

/// A connection to the network, as sets use it.
struct Connection {
  plugin::CollNet* network = nullptr;
  void* end = nullptr;
  CollNetPath path;
  std::uint64_t nodes = 0;
  std::uint64_t node = 0;                  ///< this one's number
  std::uint64_t mostBytes = 0;             ///< of a call, the same on all nodes; room for any element
  std::uint64_t calls = 0;                 ///< that the network has taken
  net::UserRegistrations* user = nullptr;  ///< what it knows of the application's memory; null: none of it
  net::Tally tally;
};

/// What a set is made of. The memory is somebody else's.
struct SetSetup {
  std::string name;                        ///< "CollNetDirect"
  std::vector<int> channels;               ///< of the lanes
  std::vector<device::CollNetConn> lanes;  ///< as the host addresses them; slots on the device are the network's
  void* sendRegistration = nullptr;        ///< of all sendSlots
  void* recvRegistration = nullptr;        ///< of all recvSlots
  bool flushes = false;                    ///< what was received is not yet where kernels see it
  std::uint64_t firstStep = 0;             ///< where all counters start
};

/// What a set waits for.
enum class SetWait : std::uint8_t {
  Kernel,      ///< nothing is under way
  Fill,        ///< some lanes have filled a step, a lane has not
  Free,        ///< a lane has not read what came eight steps before
  Room,        ///< the network does not take a call now
  Completion,  ///< the network has not finished a call
  Flush,
};

/// Where a set stands.
struct SetFacts {
  SetWait wait = SetWait::Kernel;
  std::uint64_t step = 0;
  int channel = -1;        ///< Fill, Free: whose
  std::uint64_t call = 0;  ///< Room, Completion, Flush: its number on the connection, which is the same on all nodes …
  std::uint64_t word = 0;  ///< … and what it is (callText())
  std::uint64_t bytes = 0;
  bool atNetwork() const { return wait >= SetWait::Room; }
};

/// Used by whoever makes the progress engine's round, but for facts() and quiet(). What the references name must
/// outlive it.
class SetDriver {
 public:
  SetDriver(Connection& connection, SetSetup setup);
  ~SetDriver();

  /// Ends what the network has finished; whether anything was.
  Result<bool> finish();
  /// Gives the network what all lanes have filled; whether it took anything. `busy`: another set of the connection that
  /// has calls under way; null: none.
  Result<bool> post(const SetDriver* busy);
  /// Whether calls have been begun that are not over.
  bool underWay() const { return posting_ || posted_ != ended_; }

  const std::string& name() const { return setup_.name; }
  /// What profilers hear of its steps. Any thread.
  const std::shared_ptr<proxy::StepEvents>& stepEvents(device::Direction direction) const {
    return direction == device::Direction::Send ? sendEvents_ : recvEvents_;
  }
  /// Tells them what has changed since the last time.
  void tell();

  /// Whether nothing is filled that has not come back. Any thread.
  bool quiet() const;
  /// Any thread.
  SetFacts facts() const;

 private:
  /// Requests at a time.
  static constexpr std::uint64_t kMostUnderWay = device::kSteps;
  struct UnderWay {
    void* request = nullptr;  ///< null: there was nothing to call, or it has ended
    std::uint64_t call = 0;
    std::uint64_t bytes = 0;
    bool last = false;  ///< of its step
  };

  /// Whether all lanes have filled step `issued_` and have room for what comes back.
  Result<bool> filled();
  Status checkLane(const device::CollNetConn& lane, std::uint64_t tail, std::uint64_t head) const;
  Result<bool> beginStep(const SetDriver* busy);
  Result<bool> postPiece();
  Result<void*> issue(StepRange piece) const;
  void push(const UnderWay& call);
  Result<bool> oldestEnded();
  Result<bool> flushed(std::uint64_t call);
  /// Gives the oldest step's slots back to the lanes, and what came to them.
  void deliver();
  void report(SetWait wait, std::uint64_t call, std::uint64_t step, std::uint64_t bytes);
  std::string text(std::uint64_t call, const StepCall& step, std::uint64_t bytes) const;
  /// Steps that all lanes have read.
  std::uint64_t consumed() const;
  const StepCall& of(std::uint64_t step) const { return steps_[step % device::kSteps]; }
  /// Where content of step `issued_` lies, and belongs.
  void place(const StepCall& call);
  StepSlots sendSlots(std::uint64_t step) const;
  StepSlots recvSlots(std::uint64_t step) const;

  Connection& connection_;
  const SetSetup setup_;
  std::array<StepCall, device::kSteps> steps_{};
  const std::unique_ptr<StepMemory[]> sends_, receives_;  ///< of these
  std::array<UnderWay, kMostUnderWay> underWay_{};
  std::uint64_t posted_ = 0;         ///< calls, as they are in underWay_ …
  std::uint64_t ended_ = 0;          ///< … and those that are not there any more
  std::uint64_t issued_;             ///< steps all of whose calls the network has taken
  std::atomic<std::uint64_t> done_;  ///< steps that have been delivered
  std::size_t laneAsked_ = 0;        ///< lanes before it have filled step issued_
  bool posting_ = false;             ///< of step issued_ calls remain, from `offset_` on
  std::uint64_t offset_ = 0;
  bool stalled_ = false;  ///< the network has refused the next call before
  void* flush_ = nullptr;
  const std::shared_ptr<proxy::StepEvents> sendEvents_, recvEvents_;
  // What it waits for, where that is the network.
  std::atomic<SetWait> wait_{SetWait::Kernel};
  std::atomic<std::uint64_t> waitStep_{0}, waitCall_{0}, waitWord_{0}, waitBytes_{0};
};

}  // namespace tutti::collnet
