// LL and LL128 at the sending end of a connection over a network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "device/conn_view.h"
#include "proxy/step_events.h"
#include "trace/points.h"
#include "transport/net/lane/path.h"
#include "transport/net/send/queue.h"

namespace tutti::net {

/// Takes content out of lines into messages of its own as it appears, and gives the slots back at once.
class FlaggedSendLane {
 public:
  /// `messages`: kSteps times messageRoom() bytes, registered with the network.
  FlaggedSendLane(device::Protocol protocol, NetLane& lane, const SendSetup& setup, Tally& tally, std::byte* messages);
  ~FlaggedSendLane() { events_->close(); }
  FlaggedSendLane(const FlaggedSendLane&) = delete;
  FlaggedSendLane& operator=(const FlaggedSendLane&) = delete;
  /// Looks for a few steps, not for all there are: lanes of one network connection must not get far ahead of each
  /// other.
  /// `othersOldest`: the first message of other lanes that the network has not finished; kNone: there is none.
  Result<bool> collect(std::uint64_t othersOldest);
  /// Hands the next message, which there must be, to the network; false: it does not take it now.
  Result<bool> sendOne();
  /// Which of all messages for this network connection is the next one here; kNone: there is none.
  std::uint64_t next() const { return queue_.sent() == collected_ ? kNone : made_[queue_.sent() % device::kSteps]; }
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  /// Of those that the network has, the first that it has not finished; kNone: it has none.
  std::uint64_t underWay() const { return queue_.empty() ? kNone : made_[queue_.done() % device::kSteps]; }
  /// The first message here that the network has not finished; kNone: there is none.
  std::uint64_t oldest() const { return queue_.done() == collected_ ? kNone : made_[queue_.done() % device::kSteps]; }
  /// What the network has finished, up to message `othersSent` of those for this network connection.
  Result<bool> finish(std::uint64_t othersSent);
  /// See SendQueue, and for the others SimpleSendLane.
  const char* failedIn() const { return queue_.failedIn(); }
  Status abandon();
  bool quiet() const;
  const LaneReport& report() const { return report_; }
  const std::shared_ptr<proxy::StepEvents>& events() const { return events_; }

 private:
  static constexpr int kMostAtOnce = 2;
  std::byte* messageAt(std::uint64_t step) const { return messages_ + step % device::kSteps * room_; }
  /// Whether the next step has been taken out of its slot.
  Result<bool> collectOne(std::uint64_t othersOldest);
  MessageHead headOf(std::uint64_t step) const;
  void finishOne(std::uint32_t bytes);
  /// Tells profilers how far it has come.
  void tell();

  device::Protocol protocol_;
  NetLane& lane_;
  const NetPath& path_;
  const device::SendConn& view_;
  Tally& tally_;
  std::byte* messages_;
  std::size_t room_;
  std::uint64_t collected_;
  SendQueue queue_;
  std::uint32_t lines_ = 0;  ///< of step collected_ that have been taken
  std::array<std::uint64_t, device::kSteps> made_{};
  trace::Requests requests_;
  const std::shared_ptr<proxy::StepEvents> events_;  ///< what a plugin's requests refer to outlives the lane
  LaneReport report_;
};

/// Bytes of TaskSetup::messages.
std::size_t senderMessageBytes(const device::SlotBytes& slotBytes);

}  // namespace tutti::net
