#include "transport/net/net_sender.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.h"
#include "transport/net/net_lines.h"

namespace tutti::net {

using device::Protocol;

namespace {

std::uint64_t wordOf(const device::ConnView& view, Protocol protocol, std::uint64_t step) {
  return loadCounter(view.sizesOf(protocol) + step % device::kSteps);
}

Status notASize(const NetPath& path, std::uint64_t word, std::uint64_t step) {
  return fail(ncclInternalError,
              "{}: the kernel gave step {} the size {:#x}, which is none: its memory was overwritten", path.text(),
              step, word);
}

/// How often the network is asked whether what was sent has been delivered; a clock is read every so many turns.
constexpr milliseconds kDeliveryInterval{200};
constexpr unsigned kTurnsPerClock = 32;

/// Whether the network has delivered all, or fails to, which the next turn tells.
bool settled(const NetLane* lane, const LaneEnd& end) {
  if (lane == nullptr || end.begun()) return true;
  const auto delivered = lane->net->delivered(lane->connection);
  return delivered.ok() && delivered.value();
}

void endIfUndeliverable(const NetLane* lane, LaneEnd& end) {
  if (lane == nullptr || end.begun()) return;
  const auto delivered = lane->net->delivered(lane->connection);
  if (!delivered.ok()) end.begin(delivered.status(), "sending");
}

/// Nobody is there for a step any more.
Status sentToNobody(const NetPath& path, std::uint64_t step, std::uint32_t bytes) {
  return fail(
      ncclInvalidUsage,
      "{}: rank {} has left the communicator, but a kernel here sends it step {} of {} bytes; do all ranks call "
      "the same operations before they destroy the communicator?",
      path.text(), path.link.peer.rank, step, bytes);
}

}  // namespace

SimpleSendLane::SimpleSendLane(NetLane& lane, const TaskSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      seen_(setup.firstStep),
      sent_(setup.firstStep),
      done_(setup.firstStep) {}

Result<NetBuffer> SimpleSendLane::messageOf(std::uint64_t step) const {
  const std::uint64_t word = wordOf(view_, Protocol::Simple, step);
  const auto bytes = static_cast<std::uint32_t>(word);
  const std::uint32_t slotBytes = view_.slotBytes[static_cast<int>(Protocol::Simple)];
  if (!device::isSizeOf(word, step) || bytes > slotBytes) return notASize(path_, word, step);
  NetBuffer message{nullptr, bytes, lane_.tag, lane_.slotRegistration};
  if (view_.pullFrom != nullptr) {
    const std::uint64_t offered =
        std::atomic_ref(view_.pullFrom[step % device::kSteps]).load(std::memory_order_relaxed);
    message.data = reinterpret_cast<void*>(offered);
    if (offered != 0) message.registration = nullptr;
  }
  if (message.data == nullptr) {
    message.data = view_.slots[static_cast<int>(Protocol::Simple)] + step % device::kSteps * slotBytes;
  }
  return message;
}

Result<bool> SimpleSendLane::post() {
  bool any = false;
  for (;; ++sent_, any = true) {
    if (sent_ == seen_) seen_ = loadCounter(view_.tailOf(Protocol::Simple));
    if (sent_ == seen_) return any;
    ASSIGN(const NetBuffer message, messageOf(sent_));
    auto request = lane_.net->isend(lane_.connection, message);
    if (!request.ok()) {
      failedIn_ = "isend";
      return request.status();
    }
    if (request.value() == nullptr) {
      if (!stalled_) tally_.stalled();
      stalled_ = true;
      report_.set(LaneWait::Network, sent_, static_cast<std::uint32_t>(message.bytes));
      return any;
    }
    stalled_ = false;
    tally_.posted();
    requests_[sent_ % device::kSteps] = {request.value(), static_cast<std::uint32_t>(message.bytes)};
  }
}

Result<bool> SimpleSendLane::finish() {
  bool any = false;
  for (; done_ != sent_; any = true) {
    const Request& request = requests_[done_ % device::kSteps];
    // It must not be asked about again once it is over.
    const auto over = lane_.net->test(request.handle, {});
    if (!over.ok()) {
      failedIn_ = "test";
      return over.status();
    }
    if (!over.value()) {
      if (!stalled_) report_.set(LaneWait::Completion, done_, request.bytes);
      return any;
    }
    finishOne();
  }
  if (!stalled_) report_.set(LaneWait::Kernel, done_);
  return any;
}

void SimpleSendLane::finishOne() {
  tally_.bytes(requests_[done_ % device::kSteps].bytes);
  tally_.done();
  storeCounter(view_.headOf(Protocol::Simple), ++done_);
}

Status SimpleSendLane::abandon() {
  while (done_ != sent_) finishOne();
  for (seen_ = loadCounter(view_.tailOf(Protocol::Simple)); sent_ != seen_; ++sent_) {
    ASSIGN(const NetBuffer message, messageOf(sent_));
    const auto bytes = static_cast<std::uint32_t>(message.bytes);
    if (bytes > 0) return sentToNobody(path_, sent_, bytes);
    requests_[sent_ % device::kSteps] = {};
    tally_.posted();
    finishOne();
  }
  report_.set(LaneWait::Kernel, done_);
  return {};
}

Result<bool> SimpleSendLane::advance() {
  ASSIGN(const bool posted, post());
  if (!posted && done_ == sent_) return false;
  ASSIGN(const bool finished, finish());
  return posted || finished;
}

bool SimpleSendLane::quiet() const {
  return done_ == sent_ && loadCounter(view_.tailOf(Protocol::Simple)) == sent_;
}

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
  const std::uint64_t word = wordOf(view_, protocol_, collected_);
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
  return done_ == collected_ && !device::isSizeOf(wordOf(view_, protocol_, collected_), collected_);
}

std::size_t senderMessageBytes(const device::SlotBytes& slotBytes) {
  std::size_t bytes = 0;
  for (const Protocol protocol : {Protocol::LL, Protocol::LL128}) {
    bytes += device::kSteps * messageRoom(protocol, slotBytes[static_cast<std::size_t>(protocol)]);
  }
  return bytes;
}

NetSender::NetSender(const TaskSetup& setup) : setup_(setup) {
  if (setup_.simple != nullptr) simple_.emplace(*setup_.simple, setup_, tally_);
  std::byte* messages = setup_.messages;
  for (const Protocol protocol : {Protocol::LL, Protocol::LL128}) {
    const auto index = static_cast<std::size_t>(protocol);
    if (setup_.flagged == nullptr || setup_.view.slotBytes[index] == 0) continue;
    flagged_[index].emplace(protocol, *setup_.flagged, setup_, tally_, messages);
    messages += device::kSteps * messageRoom(protocol, setup_.view.slotBytes[index]);
  }
}

/// In the order in which messages were made: no lane gets far ahead of another whose kernel came before. The receiver
/// has room for little that a kernel does not want yet.
Result<bool> NetSender::sendInOrder() {
  for (bool any = false;; any = true) {
    FlaggedSendLane* first = nullptr;
    for (auto& lane : flagged_) {
      if (lane && lane->next() != FlaggedSendLane::kNone && (first == nullptr || lane->next() < first->next())) {
        first = &*lane;
      }
    }
    if (first == nullptr) return any;
    ASSIGN(const bool sent, first->sendOne());
    if (!sent) return any;
  }
}

Result<bool> NetSender::collectFlagged() {
  bool any = false;
  for (auto& lane : flagged_) {
    if (!lane) continue;
    std::uint64_t oldest = FlaggedSendLane::kNone;
    for (const auto& other : flagged_) {
      if (other && &other != &lane) oldest = std::min(oldest, other->oldest());
    }
    ASSIGN(const bool collected, lane->collect(oldest));
    any = any || collected;
  }
  return any;
}

Result<bool> NetSender::moveFlagged() {
  ASSIGN(bool any, sendInOrder());
  for (auto& lane : flagged_) {
    if (!lane) continue;
    ASSIGN(const bool finished, lane->finish());
    any = any || finished;
  }
  return any;
}

const char* NetSender::flaggedFailedIn() const {
  for (const auto& lane : flagged_) {
    if (lane && lane->failedIn() != nullptr) return lane->failedIn();
  }
  return nullptr;
}

Result<bool> NetSender::advanceFlagged() {
  ASSIGN(const bool collected, collectFlagged());
  if (!flaggedEnd_.begun()) {
    const auto moved = moveFlagged();
    if (moved.ok()) return collected || moved.value();
    if (flaggedFailedIn() == nullptr) return moved;
    flaggedEnd_.begin(moved.status(), flaggedFailedIn());
  }
  ASSIGN(const bool closed, flaggedEnd_.settle(setup_));
  for (auto& lane : flagged_) {
    if (closed && lane) TRY(lane->abandon());
  }
  return collected;
}

Result<bool> NetSender::advanceSimple() {
  if (!simpleEnd_.begun()) {
    auto advanced = simple_->advance();
    if (advanced.ok() || simple_->failedIn() == nullptr) return advanced;
    simpleEnd_.begin(advanced.status(), simple_->failedIn());
  }
  ASSIGN(const bool closed, simpleEnd_.settle(setup_));
  if (closed) TRY(simple_->abandon());
  return false;
}

void NetSender::checkDelivery() {
  if (++turns_ % kTurnsPerClock != 0) return;
  const auto now = SteadyClock::now();
  if (now < nextCheck_) return;
  nextCheck_ = now + kDeliveryInterval;
  endIfUndeliverable(setup_.flagged, flaggedEnd_);
  endIfUndeliverable(setup_.simple, simpleEnd_);
}

Result<bool> NetSender::advance() {
  checkDelivery();
  bool any = false;
  if (setup_.flagged != nullptr) {
    ASSIGN(any, advanceFlagged());
  }
  if (simple_) {
    ASSIGN(const bool simple, advanceSimple());
    any = any || simple;
  }
  return any;
}

bool NetSender::quiet() const {
  for (const auto& lane : flagged_) {
    if (lane && !lane->quiet()) return false;
  }
  if (simple_ && !simple_->quiet()) return false;
  return settled(setup_.flagged, flaggedEnd_) && settled(setup_.simple, simpleEnd_);
}

std::string NetSender::describe() const {
  const auto of = [](const auto& lane) { return lane ? &lane->report() : nullptr; };
  const LaneReport* shown = reportToShow({of(simple_), of(flagged_[0]), of(flagged_[1])});
  return setup_.path.direction() + ": " + (shown == nullptr ? "no protocol" : shown->text());
}

}  // namespace tutti::net
