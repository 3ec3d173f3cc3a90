#include "transport/net/send/flagged.h"

#include <algorithm>
#include <cstring>

#include "transport/net/lane/counters.h"
#include "transport/net/lane/flag_lines.h"
#include "transport/net/lane/send_errors.h"
#include "transport/net/lane/tally.h"

namespace tutti::net {

FlaggedSendLane::FlaggedSendLane(device::Protocol protocol, NetLane& lane, const SendSetup& setup, Tally& tally,
                                 std::byte* messages)
    : protocol_(protocol),
      lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      messages_(messages),
      room_(messageRoom(protocol, setup.view.slotBytes[static_cast<int>(protocol)])),
      collected_(setup.firstStep),
      queue_(lane, tally, setup.firstStep),
      requests_(trace::Kind::NetSend, stepWords(setup.path, protocol)),
      events_(std::make_shared<proxy::StepEvents>(setup.firstStep, device::kSteps)),
      report_(protocol) {}

Result<bool> FlaggedSendLane::collectOne(std::uint64_t othersOldest) {
  if (collected_ - queue_.done() == device::kSteps) return false;
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
  if (events_->look()) events_->setBytes(collected_, bytes);
  storeCounter(view_.headOf(protocol_), ++collected_);
  tell();
  return true;
}

Result<bool> FlaggedSendLane::collect(std::uint64_t othersOldest) {
  tell();
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
  const std::uint64_t step = queue_.sent();
  const std::uint32_t bytes = headOf(step).bytes;
  void* const events = events_->on() && lane_.net->tellsEvents() ? events_->requestOf(step) : nullptr;
  ASSIGN(const bool taken,
         queue_.post({messageAt(step), sizeof(MessageHead) + bytes, lane_.tag, lane_.registration, events}));
  if (taken) {
    requests_.posted(step);
    tell();
  } else {
    requests_.refused();
    report_.set(LaneWait::Network, step, bytes);
  }
  return taken;
}

Result<bool> FlaggedSendLane::finish(std::uint64_t othersSent) {
  bool any = false;
  for (; underWay() < othersSent; any = true) {
    const std::uint64_t step = queue_.done();
    const std::uint32_t bytes = headOf(step).bytes;
    ASSIGN(const bool over, queue_.oldestEnded());
    if (!over) {
      if (!queue_.stalled()) report_.set(LaneWait::Completion, step, bytes);
      return any;
    }
    finishOne(bytes);
  }
  if (any && queue_.done() == collected_ && lines_ == 0) report_.set(LaneWait::Kernel, queue_.done());
  return any;
}

void FlaggedSendLane::finishOne(std::uint32_t bytes) {
  tally_.bytes(bytes);
  tally_.done();
  requests_.ended(queue_.done(), bytes);
  queue_.pop();
  tell();
}

void FlaggedSendLane::tell() {
  if (!events_->look()) [[likely]]
    return;
  events_->follow({proxy::StepEvents::kAtOnce, collected_, queue_.sent(), queue_.done()});
}

/// A receiver of nothing need not wait for it: messages without content may come too late for a peer in order.
Status FlaggedSendLane::abandon() {
  while (!queue_.empty()) finishOne(headOf(queue_.done()).bytes);
  for (; queue_.sent() != collected_; queue_.skip(), finishOne(0)) {
    const std::uint64_t step = queue_.sent();
    if (const std::uint32_t bytes = headOf(step).bytes; bytes > 0) return sentToNobody(path_, step, bytes);
  }
  report_.set(LaneWait::Kernel, queue_.done());
  return {};
}

bool FlaggedSendLane::quiet() const {
  return queue_.done() == collected_ && !device::isSizeOf(sizeSaid(view_, protocol_, collected_), collected_);
}

std::size_t senderMessageBytes(const device::SlotBytes& slotBytes) {
  std::size_t bytes = 0;
  for (const device::Protocol protocol : {device::Protocol::LL, device::Protocol::LL128}) {
    bytes += device::kSteps * messageRoom(protocol, slotBytes[static_cast<std::size_t>(protocol)]);
  }
  return bytes;
}

}  // namespace tutti::net
