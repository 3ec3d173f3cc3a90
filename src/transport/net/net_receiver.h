// The receiving end of a connection over a network: brings what arrives into slots that kernels read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "device/work.h"
#include "proxy/task.h"
#include "transport/net/net_groups.h"
#include "transport/net/net_lane_end.h"
#include "transport/net/net_path.h"

namespace tutti::net {

/// Receives the Simple protocol: messages land in their slots.
class SimpleRecvLane final : private GroupedLane {
 public:
  /// What the references name must outlive the lane.
  SimpleRecvLane(NetLane& lane, const TaskSetup& setup, Tally& tally);
  ~SimpleRecvLane();
  SimpleRecvLane(const SimpleRecvLane&) = delete;
  SimpleRecvLane& operator=(const SimpleRecvLane&) = delete;
  /// What has come is delivered even if the network refuses further receives. An error with networkFailed(): nothing more
  /// comes.
  Result<bool> advance();
  bool networkFailed() const { return networkFailed_; }
  /// What can be done without the network. Errors: ncclInvalidUsage, the peer has left and a kernel waits for it.
  Result<bool> drain(bool peerHasLeft);
  const LaneReport& report() const { return report_; }

 private:
  /// Where the content of the step belongs: its slot, or the memory that the kernel has named.
  NetBuffer slotOf(std::uint64_t step) const;
  /// Whether the receive for the next step may be posted: its slot is free, or the kernel has given it a shared one.
  bool mayPost(std::uint64_t head) const;
  /// Posts receives for the slots before `head` + kSteps.
  Result<bool> post(std::uint64_t head);
  /// Sees to it that receives are posted, its own and those of others that share the connection.
  Result<bool> postGroups();
  std::optional<AskedReceive> asked() const override;
  void posted(RecvTicket ticket) override;
  /// Compares what came with `step` with what the kernel reads of it, where that is known already.
  Status checkSize(std::uint64_t step) const;
  /// Does so for the steps before `head`, which were delivered before their kernel came.
  Status checkUpTo(std::uint64_t head);
  /// Whether the oldest receive has ended, and its content is where the GPU sees it.
  Result<bool> arrived();
  Result<bool> flushed();
  /// The same for a receive that was posted with others.
  Result<bool> arrivedInGroup();
  /// Takes down what the oldest receive has brought.
  Status enter(int bytes);
  Result<bool> deliver();

  NetLane& lane_;
  const NetPath& path_;
  const device::ConnView& view_;
  Tally& tally_;
  std::uint64_t posted_;
  std::uint64_t done_;
  const SlotStore* shared_;  ///< null: slots of its own
  RecvGroups* groups_;         ///< null: receives are posted one by one
  std::uint64_t checked_;  ///< steps whose kernels have said what they read of them, or say nothing
  bool stalled_ = false;
  bool received_ = false;  ///< the oldest receive has ended and is being flushed
  bool networkFailed_ = false;
  bool refusedForGood_ = false;  ///< the network takes no further receives
  void* flush_ = nullptr;  ///< null with `received_`: still to be asked for
  std::array<std::uint32_t, device::kSteps> bytes_{};
  std::array<void*, device::kSteps> requests_{};
  std::array<RecvTicket, device::kSteps> tickets_{};  ///< instead of requests, with groups
  LaneReport report_{device::Protocol::Simple};
};

/// Receives LL and LL128 beside the slots: messages name their protocol, and lines are written in an order of our own.
class FlaggedRecvLane {
 public:
  FlaggedRecvLane(NetLane& lane, const TaskSetup& setup, Tally& tally);
  /// See SimpleRecvLane.
  Result<bool> advance();
  bool networkFailed() const { return networkFailed_; }
  Result<bool> drain(bool /*peerHasLeft*/) {
    const bool ll = put(device::Protocol::LL);
    return put(device::Protocol::LL128) || ll;
  }
  const LaneReport& report(device::Protocol protocol) const {
    return fifos_[static_cast<std::size_t>(protocol)].report;
  }

 private:
  static constexpr std::size_t kFlagged = 2;
  using Place = std::uint8_t;
  /// The slots of one protocol.
  struct Fifo {
    explicit Fifo(device::Protocol protocol) : report(protocol) {}
    std::uint64_t arrived = 0;                   ///< steps of which messages have come
    std::uint64_t put = 0;                       ///< steps whose lines have been written
    std::array<Place, kMostUnderWay> placeOf{};  ///< of the steps put .. arrived-1
    LaneReport report;
  };
  std::byte* messageAt(std::size_t place) const { return messages_ + place * room_; }
  Result<bool> post();
  Result<bool> take();
  /// A message that has come to `place`.
  Status enter(Place place, std::size_t received);
  bool put(device::Protocol protocol);

  NetLane& lane_;
  const NetPath& path_;
  const device::ConnView& view_;
  Tally& tally_;
  std::byte* messages_;
  std::size_t room_;
  bool stalled_ = false;
  bool networkFailed_ = false;
  bool refusedForGood_ = false;
  std::optional<Place> refused_;  ///< that the network had no room for: it is asked again with the same
  // Receives end in the order in which they were posted; places come free in another one.
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
  std::array<Place, kMostUnderWay> order_{};
  std::array<void*, kMostUnderWay> requests_{};
  std::uint32_t free_ = (1u << kMostUnderWay) - 1;  ///< a bit for each place
  std::array<Fifo, kFlagged> fifos_{Fifo(device::Protocol::LL), Fifo(device::Protocol::LL128)};
};

/// Bytes of TaskSetup::messages.
std::size_t receiverMessageBytes(const device::SlotBytes& slotBytes);

/// See proxy/task.h. Does not own the network connections.
class NetReceiver final : public ProgressTask {
 public:
  explicit NetReceiver(const TaskSetup& setup);
  Result<bool> advance() override;
  /// Always: what arrives can wait until a kernel wants it.
  bool quiet() const override { return true; }
  TaskCounters counters() const override { return tally_.read(); }
  std::string describe() const override;
  bool starves(std::size_t protocol) const override;

 private:
  const LaneReport* reportOf(device::Protocol protocol) const;
  template <class Lane>
  Result<bool> advanceLane(Lane& lane, LaneEnd& end);

  TaskSetup setup_;
  Tally tally_;
  LaneEnd simpleEnd_;
  LaneEnd flaggedEnd_;
  std::optional<SimpleRecvLane> simple_;
  std::optional<FlaggedRecvLane> flagged_;
};

}  // namespace tutti::net
