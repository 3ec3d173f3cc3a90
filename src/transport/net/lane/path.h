// What the pieces of one end of a connection over a network have in common: names for messages, the network connection
// that a lane uses, what lanes report.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "device/conn_view.h"
#include "device/direction.h"
#include "plugin/network/net.h"
#include "trace/format.h"
#include "transport/common/transport.h"

namespace tutti::net {

using device::Direction;

class PeerFarewells;

/// Which connection it is, for messages.
struct NetPath {
  transport::LinkSpec link;
  device::Direction direction = device::Direction::Send;
  std::string description;                              ///< "NET/Socket/0"
  std::string numbering = {};                           ///< see NetFamily; empty: there is but one
  std::shared_ptr<const PeerFarewells> farewells = {};  ///< null: the peer never leaves

  bool peerHasLeft() const;
  /// See PeerFarewells::exitOf().
  std::string exitOf(int rank) const;
  /// That it has left, for people; and the code of an error that comes of it.
  std::string departureText() const;
  ncclResult_t departureCode() const;
  /// "send to rank 3 (host b, device 0) by NET/Socket/0 on channel 1"; with the communicator where others use it, too:
  /// "rank 3 (host b, device 0, in communicator 0x5c)".
  std::string brief() const;
  /// The same with "of rank 0 (host a, device 0)".
  std::string text() const;
};

/// Which connection and protocol it is, for a trace.
trace::StepWords stepWords(const NetPath& path, device::Protocol protocol);

/// The error of a call of the network: who, with whom, over what, which call, what the network has said. Says nothing,
/// and passes `cause` on, where the peer has left in peace.
Status failNet(const NetPath& path, Status cause, std::string_view call);

/// A call of the network that has failed. The network may say only once why.
struct FailedCall {
  Status why;
  std::string call;
  std::string said;  ///< lastErrorText() after it
};

class SpareMemory;
class Tally;
class UserRegistrations;

/// A network connection as lanes use it, on the progress engine's thread.
struct NetLane {
  plugin::Net* net = nullptr;
  void* connection = nullptr;
  void* registration = nullptr;       ///< of the end's host memory
  void* slotRegistration = nullptr;   ///< of the Simple slots; the same unless they lie on the device
  UserRegistrations* user = nullptr;  ///< a sender's, of what kernels offer; null: the network takes any memory
  SpareMemory* spare = nullptr;       ///< with `user`: where to send from what it does not take
  int tag = 0;
  int underWay = 0;                              ///< requests, where several lanes share the connection …
  std::uint64_t made = 0;                        ///< … and messages that they have made for it
  bool flushes = false;                          ///< what was received is not yet where the GPU sees it
  bool parts = false;                            ///< its receives are answered before it ends (lane/parting.h)
  bool tellsSizes = true;                        ///< a receiver's: the network says how much has come
  std::optional<FailedCall>* failure = nullptr;  ///< a sender's, of all tasks that share the connection, if any do
};

/// Requests of a connection at a time.
inline constexpr int kMostUnderWay = device::kSteps;

/// What a lane waits for. Order: receives of other channels come before its own (RecvSequence).
enum class LaneWait : std::uint8_t { Kernel, Lines, Network, Completion, Room, Message, Flush, Slot, Order, Delivery };

/// Where a lane stands.
struct LaneFacts {
  device::Protocol protocol = device::Protocol::Simple;
  LaneWait wait = LaneWait::Kernel;
  std::uint32_t bytes = 0;
  std::uint64_t step = 0;
  /// "LL step 17".
  std::string place() const;
  /// "waits for the network to take 4096 bytes".
  std::string waits() const;
  /// Whether it waits for a kernel of this rank, or for nothing in particular to arrive.
  bool idle() const { return wait == LaneWait::Kernel || wait == LaneWait::Message; }
  /// Whether the network has what was sent, or does not take it.
  bool atNetwork() const {
    return wait == LaneWait::Network || wait == LaneWait::Completion || wait == LaneWait::Delivery;
  }
  friend bool operator==(const LaneFacts&, const LaneFacts&) = default;
};

/// Written by one thread, read by any.
class LaneReport {
 public:
  explicit LaneReport(device::Protocol protocol) : protocol_(protocol) {}
  void set(LaneWait wait, std::uint64_t step, std::uint32_t bytes = 0) {
    wait_.store(wait, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
    bytes_.store(bytes, std::memory_order_relaxed);
  }
  LaneFacts facts() const {
    return {protocol_, wait_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed),
            step_.load(std::memory_order_relaxed)};
  }
  LaneWait wait() const { return wait_.load(std::memory_order_relaxed); }

 private:
  device::Protocol protocol_;
  std::atomic<LaneWait> wait_{LaneWait::Kernel};
  std::atomic<std::uint32_t> bytes_{0};
  std::atomic<std::uint64_t> step_{0};
};

/// Of a task's lanes, the one to speak of: one that waits for something in particular, or has come farthest. Entries
/// may be null; unset: all are.
std::optional<LaneFacts> factsToShow(std::initializer_list<const LaneReport*> reports);

class SlotStore;
class MultiRecv;

/// What a task is made for. The memory is the endpoint's.
struct TaskSetup {
  NetPath path;
  NetLane* simple = nullptr;      ///< the network connection of the Simple protocol; null: not offered
  NetLane* flagged = nullptr;     ///< … of the others
  std::byte* messages = nullptr;  ///< senderMessageBytes() or receiverMessageBytes(), registered with `flagged`
  std::uint64_t firstStep = 0;    ///< where all counters start
  /// How long the failure of a call may turn out to be the peer's farewell, where NetPath::farewells can tell: that
  /// word comes another way.
  milliseconds farewellGrace{2000};
  SlotStore* shared = nullptr;  ///< where the slots of the Simple protocol are those of several connections
};
/// `view`: the kernel's, in addresses of the host; slots on the device are the network's.
struct SendSetup : TaskSetup {
  device::SendConn view{};
};
struct RecvSetup : TaskSetup {
  device::RecvConn view{};
  MultiRecv* groups = nullptr;  ///< posts the receives of the Simple protocol; only with `shared`
};

/// A message of a flagged protocol: this, then content.
struct MessageHead {
  std::uint32_t protocol = 0;
  std::uint32_t bytes = 0;
  std::uint64_t step = 0;
};
static_assert(sizeof(MessageHead) == 16);

/// Bytes of the longest message of slots of this size; 0 where the protocol is not offered.
std::size_t messageRoom(device::Protocol protocol, std::uint32_t slotBytes);
/// A slot is one message: it must fit into what the network's device takes at once. Errors: ncclInvalidUsage where it
/// does not; what asking the device says.
Status checkSlotsFit(const NetPath& path, plugin::Net& net, int netDevice);

}  // namespace tutti::net
