#include "transport/net/net_send_flagged.h"

#include <algorithm>
#include <cstring>

#include "transport/net/net_lines.h"
#include "transport/net/net_send_faults.h"

namespace tutti::net {

using device::Protocol;

FlaggedSendLane::FlaggedSendLane(Protocol protocol, NetLane& lane, const TaskSetup& setup, Tally& tally,
                                 std::byte* messages)
    : protocol_(protocol),
      lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      messages_(messages),
      room_(messageRoom(protocol, setup.view.slotBytes[static_cast<int>(protocol)])),
      collected_(setup.firstStep),
      sent_(setup.firstStep),
      done_(setup.firstStep),
      report_(protocol) {}

Result<bool> FlaggedSendLane::collectOne(std::uint64_t othersOldest) {
  if (collected_ - done_ == device::kSteps) return false;
  // A network may finish short messages before long ones that were made earlier. The peer has places for so many: those
  // made later must not take them all.
  const std::uint64_t first = std::min(othersOldest, oldest());
  if (first != kNone && lane_.made - first >= kMostUnderWay) return false;
  const std::uint64_t word = sizeSaid(view_, protocol_, collected_);
  if (!device::isSizeOf(word, collected_)) return false;
  const auto bytes = static_cast<std::uint32_t>(word);
  const std::uint32_t slotBytes = view_.slotBytes[static_cast<int>(protocol_)];
  if (bytes > contentRoom(protocol_, slotBytes)) return notASize(path_, word, collected_);
  std::byte* const message = messageAt(collected_);
  const LineSlot slot{view_.slots[static_cast<int>(protocol_)] + collected_ % device::kSteps * slotBytes, slotBytes,
                      collected_};
  lines_ = takeLines(protocol_, slot, bytes, lines_, message + sizeof(MessageHead));
  if (lines_ < linesFor(protocol_, bytes)) {
    report_.set(LaneWait::Lines, collected_, bytes);
    return false;
  }
  lines_ = 0;
  const MessageHead head{static_cast<std::uint32_t>(protocol_), bytes, collected_};
  std::memcpy(message, &head, sizeof(head));
  made_[collected_ % device::kSteps] = lane_.made++;
  tally_.posted();
  storeCounter(view_.headOf(protocol_), ++collected_);
  return true;
}

Result<bool> FlaggedSendLane::collect(std::uint64_t othersOldest) {
  for (int n = 0; n < kMostAtOnce; ++n) {
    ASSIGN(const bool collected, collectOne(othersOldest));
    if (!collected) return n > 0;
  }
  return true;
}

MessageHead FlaggedSendLane::headOf(std::uint64_t step) const {
  MessageHead head;
  std::memcpy(&head, messageAt(step), sizeof(head));
  return head;
}

Result<bool> FlaggedSendLane::sendOne() {
  const MessageHead head = headOf(sent_);
  void* request = nullptr;
  if (lane_.underWay < kMostUnderWay) {
    const NetBuffer buffer{messageAt(sent_), sizeof(head) + head.bytes, lane_.tag, lane_.registration};
    auto posted = lane_.net->isend(lane_.connection, buffer);
    if (!posted.ok()) {
      failedIn_ = "isend";
      return posted.status();
    }
    request = posted.value();
  }
  if (request == nullptr) {
    if (!stalled_) tally_.stalled();
    stalled_ = true;
    report_.set(LaneWait::Network, sent_, head.bytes);
    return false;
  }
  stalled_ = false;
  requests_[sent_ % device::kSteps] = request;
  ++lane_.underWay;
  ++sent_;
  return true;
}

Result<bool> FlaggedSendLane::finish() {
  bool any = false;
  for (; done_ != sent_; any = true) {
    const std::uint32_t bytes = headOf(done_).bytes;
    const auto over = lane_.net->test(requests_[done_ % device::kSteps], {});
    if (!over.ok()) {
      failedIn_ = "test";
      return over.status();
    }
    if (!over.value()) {
      if (!stalled_) report_.set(LaneWait::Completion, done_, bytes);
      return any;
    }
    finishOne(bytes);
  }
  if (any && done_ == collected_ && lines_ == 0) report_.set(LaneWait::Kernel, done_);
  return any;
}

void FlaggedSendLane::finishOne(std::uint32_t bytes) {
  --lane_.underWay;
  tally_.bytes(bytes);
  tally_.done();
  ++done_;
}

/// A receiver of nothing need not wait for it: messages without content may come too late for a peer in order.
Status FlaggedSendLane::abandon() {
  while (done_ != sent_) finishOne(headOf(done_).bytes);
  for (; sent_ != collected_; ++sent_, ++lane_.underWay, finishOne(0)) {
    if (const std::uint32_t bytes = headOf(sent_).bytes; bytes > 0) return sentToNobody(path_, sent_, bytes);
  }
  report_.set(LaneWait::Kernel, done_);
  return {};
}

bool FlaggedSendLane::quiet() const {
  return done_ == collected_ && !device::isSizeOf(sizeSaid(view_, protocol_, collected_), collected_);
}

std::size_t senderMessageBytes(const device::SlotBytes& slotBytes) {
  std::size_t bytes = 0;
  for (const Protocol protocol : {Protocol::LL, Protocol::LL128}) {
    bytes += device::kSteps * messageRoom(protocol, slotBytes[static_cast<std::size_t>(protocol)]);
  }
  return bytes;
}

}  // namespace tutti::net
