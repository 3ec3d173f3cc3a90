// The Simple protocol at the receiving end of a connection over a network.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "device/conn_view.h"
#include "proxy/step_events.h"
#include "trace/points.h"
#include "transport/net/lane/path.h"
#include "transport/net/recv/multi_recv.h"
#include "transport/net/recv/queue.h"

namespace tutti::net {

/// Receives messages into the slots where kernels read them.
class SimpleRecvLane final : private MultiRecvLane {
 public:
  /// What the references name must outlive the lane.
  SimpleRecvLane(NetLane& lane, const RecvSetup& setup, Tally& tally);
  ~SimpleRecvLane();
  SimpleRecvLane(const SimpleRecvLane&) = delete;
  SimpleRecvLane& operator=(const SimpleRecvLane&) = delete;
  /// What has come is delivered even if the network refuses further receives. An error with networkFailed(): nothing
  /// more comes.
  Result<bool> advance();
  bool networkFailed() const { return queue_.networkFailed(); }
  /// What can be done without the network. Errors: ncclInvalidUsage, the peer has left and a kernel waits for it.
  Result<bool> drain(bool peerHasLeft);
  /// See FlaggedRecvLane.
  bool ended() const;
  const LaneReport& report() const { return report_; }
  const std::shared_ptr<proxy::StepEvents>& events() const { return events_; }

 private:
  /// Where the content of the step belongs: its slot, or the memory that the kernel has named.
  plugin::NetBuffer slotOf(std::uint64_t step) const;
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
  /// Takes down what the oldest receive has brought. A network that says nothing of it has filled the slot.
  Status enter(int bytes);
  Result<bool> take();
  /// Whether a step that has come is for a kernel. One without content may mean nothing (lane/parting.h): it is where
  /// a kernel has asked for it.
  bool isWanted(std::uint64_t step) const;
  /// Tells kernels of what has come.
  bool deliver();
  /// What a kernel asks for must not have come without content. The word of a peer that has left may come later.
  Status checkMissing();
  /// Tells profilers how far it has come.
  void tell();
  Status leftInVain(std::uint64_t step, std::uint64_t wanted) const;

  NetLane& lane_;
  const NetPath& path_;
  const device::RecvConn& view_;
  Tally& tally_;
  RecvQueue queue_;
  const SlotStore* shared_;  ///< null: slots of its own
  MultiRecv* groups_;        ///< null: receives are posted one by one
  milliseconds grace_;       ///< see TaskSetup::farewellGrace
  std::uint64_t delivered_;  ///< steps that kernels have been told of
  std::optional<SteadyClock::time_point> missingSince_;
  std::uint64_t checked_;  ///< steps whose kernels have said what they read of them, or say nothing
  bool received_ = false;  ///< the oldest receive has ended and is being flushed
  void* flush_ = nullptr;  ///< null with `received_`: still to be asked for
  std::array<std::uint32_t, device::kSteps> bytes_{};
  std::array<RecvTicket, device::kSteps> tickets_{};  ///< with groups
  trace::Requests requests_;
  std::uint64_t sized_;                              ///< steps whose sizes they know
  const std::shared_ptr<proxy::StepEvents> events_;  ///< what a plugin's requests refer to outlives the lane
  LaneReport report_{device::Protocol::Simple};
};

}  // namespace tutti::net
