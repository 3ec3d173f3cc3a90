#include "transport/net/net_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "base/log.h"
#include "transport/net/net_lines.h"
#include "transport/net/net_shared.h"

namespace tutti::net {

using device::Protocol;

namespace {

Result<void*> receive(const NetLane& lane, const NetBuffer& into) {
  return lane.net->irecv(lane.connection, std::span(&into, 1));
}

/// The bytes that a receive has brought; -1: it goes on.
Result<int> receivedBy(const NetLane& lane, void* request) {
  int bytes = 0;
  const auto over = lane.net->test(request, std::span(&bytes, 1));
  if (!over.ok()) return over.status();
  return over.value() ? bytes : -1;
}

}  // namespace

SimpleRecvLane::SimpleRecvLane(NetLane& lane, const TaskSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      posted_(setup.firstStep),
      done_(setup.firstStep),
      shared_(setup.shared),
      groups_(setup.groups),
      checked_(setup.firstStep) {
  if (groups_ != nullptr) groups_->join(*this);
}

SimpleRecvLane::~SimpleRecvLane() {
  if (groups_ != nullptr) groups_->leave(*this);
}

NetBuffer SimpleRecvLane::slotOf(std::uint64_t step) const {
  const auto index = static_cast<int>(Protocol::Simple);
  const std::uint32_t slotBytes = view_.slotBytes[index];
  if (shared_ != nullptr) {
    const std::uint64_t into = view_.pullBytes == 0 ? 0 : loadCounter(view_.intoOf(step));
    if (into != 0) {
      const auto bytes = static_cast<std::uint32_t>(loadCounter(view_.expectedOf(step)));
      return {reinterpret_cast<void*>(into), bytes, lane_.tag, nullptr};
    }
    const auto place = static_cast<std::uint32_t>(loadCounter(view_.placesOf(step)));
    return {shared_->at(place), slotBytes, lane_.tag, lane_.slotRegistration};
  }
  return {view_.slots[index] + step % device::kSteps * slotBytes, slotBytes, lane_.tag, lane_.slotRegistration};
}

Status SimpleRecvLane::checkSize(std::uint64_t step) const {
  const std::uint64_t word = loadCounter(view_.expectedOf(step));
  const std::uint32_t came = bytes_[step % device::kSteps];
  const auto expected = static_cast<std::uint32_t>(word);
  if (!device::isSizeOf(word, step) || came >= expected) return {};
  return fail(ncclRemoteError,
              "{}: step {} came with {} bytes, but the kernel reads {}: the network {} cut the message short, or the "
              "ranks call their operations with different counts",
              path_.text(), step, came, expected, lane_.net->name());
}

Status SimpleRecvLane::checkUpTo(std::uint64_t head) {
  if (shared_ != nullptr) return {};  // kernels speak first: what came was compared when it came
  for (; checked_ != done_ && static_cast<std::int64_t>(head - checked_) > 0; ++checked_) TRY(checkSize(checked_));
  return {};
}

Result<bool> SimpleRecvLane::drain(bool peerHasLeft) {
  TRY(checkUpTo(loadCounter(view_.headOf(Protocol::Simple))));
  if (!peerHasLeft) return false;
  const std::uint64_t wanted = loadCounter(view_.expectedOf(done_));
  if (!device::isSizeOf(wanted, done_)) return false;
  return fail(ncclInvalidUsage,
              "{}: rank {} has left the communicator, but a kernel here waits for step {} of {} bytes from it; do all ranks "
              "call the same operations before they destroy the communicator?",
              path_.text(), path_.link.peer.rank, done_, static_cast<std::uint32_t>(wanted));
}

bool SimpleRecvLane::mayPost(std::uint64_t head) const {
  if (shared_ == nullptr) return posted_ - head < device::kSteps;
  return posted_ - done_ < device::kSteps && device::isSizeOf(loadCounter(view_.expectedOf(posted_)), posted_);
}

Result<bool> SimpleRecvLane::post(std::uint64_t head) {
  bool any = false;
  if (refusedForGood_ && posted_ != done_) return false;
  for (; mayPost(head); ++posted_, any = true) {
    const auto posting = receive(lane_, slotOf(posted_));
    if (!posting.ok()) {
      refusedForGood_ = true;
      if (posted_ != done_) return any;   // what is under way may still come
      networkFailed_ = true;
      return posting.status();
    }
    void* const request = posting.value();
    if (request == nullptr) {
      if (!stalled_) tally_.stalled();
      stalled_ = true;
      if (posted_ == done_) report_.set(LaneWait::Room, posted_);
      return any;
    }
    stalled_ = false;
    requests_[posted_ % device::kSteps] = request;
  }
  return any;
}

std::optional<AskedReceive> SimpleRecvLane::asked() const {
  if (networkFailed_ || !mayPost(0)) return {};
  const auto turn = static_cast<std::uint32_t>(loadCounter(view_.placesOf(posted_)) >> 32);
  return AskedReceive{slotOf(posted_), device::turnIn(turn), lane_.flushes};
}

void SimpleRecvLane::posted(RecvTicket ticket) {
  tickets_[posted_++ % device::kSteps] = ticket;
}

Result<bool> SimpleRecvLane::postGroups() {
  if (refusedForGood_ && posted_ != done_) return false;
  const auto any = groups_->post();
  if (!any.ok()) {
    refusedForGood_ = true;
    if (posted_ != done_) return false;  // what is under way may still come
    networkFailed_ = true;
    return any;
  }
  const bool due = asked().has_value();
  if (due && groups_->refused() && !stalled_) tally_.stalled();
  stalled_ = due && groups_->refused();
  const LaneWait forOthers = stalled_ ? LaneWait::Room : LaneWait::Turn;
  if (posted_ == done_) report_.set(due ? forOthers : LaneWait::Kernel, posted_);
  return any;
}

Result<bool> SimpleRecvLane::flushed() {
  if (flush_ == nullptr) {
    NetBuffer slot = slotOf(done_);
    slot.bytes = bytes_[done_ % device::kSteps];
    auto flush = lane_.net->iflush(lane_.connection, std::span(&slot, 1));
    if (!flush.ok()) return failNet(path_, flush.status(), "iflush");
    flush_ = flush.value();
    if (flush_ == nullptr) return true;
  }
  const auto over = lane_.net->test(flush_, {});
  if (!over.ok()) return failNet(path_, over.status(), "test of a flush");
  if (over.value()) flush_ = nullptr;
  return over.value();
}

Status SimpleRecvLane::enter(int bytes) {
  const std::uint32_t room = view_.slotBytes[static_cast<int>(Protocol::Simple)];
  if (static_cast<std::uint32_t>(bytes) > room) {
    return fail(ncclRemoteError, "{}: step {} came with {} bytes, more than the {} of a slot", path_.text(), done_,
                bytes, room);
  }
  bytes_[done_ % device::kSteps] = static_cast<std::uint32_t>(bytes);
  TRY(checkSize(done_));
  tally_.posted();
  return {};
}

Result<bool> SimpleRecvLane::arrivedInGroup() {
  const RecvTicket ticket = tickets_[done_ % device::kSteps];
  const auto here = groups_->received(ticket);
  if (!here.ok()) {
    networkFailed_ = true;
    return here;
  }
  if (!here.value()) {
    report_.set(groups_->flushing(ticket) ? LaneWait::Flush : LaneWait::Message, done_);
    return false;
  }
  TRY(enter(groups_->take(ticket)));
  return true;
}

Result<bool> SimpleRecvLane::arrived() {
  if (groups_ != nullptr) return arrivedInGroup();
  if (!received_) {
    const auto over = receivedBy(lane_, requests_[done_ % device::kSteps]);
    if (!over.ok()) {
      networkFailed_ = true;
      return over.status();
    }
    const int bytes = over.value();
    if (bytes < 0) {
      report_.set(LaneWait::Message, done_);
      return false;
    }
    received_ = true;
    TRY(enter(bytes));
  }
  const std::uint32_t received = bytes_[done_ % device::kSteps];
  if (!lane_.flushes || received == 0) return true;
  report_.set(LaneWait::Flush, done_, received);
  return flushed();
}

Result<bool> SimpleRecvLane::deliver() {
  bool any = false;
  for (; done_ != posted_; any = true) {
    ASSIGN(const bool here, arrived());
    if (!here) return any;
    received_ = false;
    tally_.bytes(bytes_[done_ % device::kSteps]);
    tally_.done();
    storeCounter(view_.tailOf(Protocol::Simple), ++done_);
  }
  // Of a lane in groups, postGroups() knows.
  if (!stalled_ && groups_ == nullptr) report_.set(shared_ == nullptr ? LaneWait::Slot : LaneWait::Kernel, done_);
  return any;
}

Result<bool> SimpleRecvLane::advance() {
  ASSIGN(const bool delivered, deliver());
  // No more is received than was checked: what kernels say of a step, and its size here, stay that long.
  const std::uint64_t head = loadCounter(view_.headOf(Protocol::Simple));
  TRY(checkUpTo(head));
  ASSIGN(const bool posted, groups_ != nullptr ? postGroups() : post(head));
  return posted || delivered;
}

FlaggedRecvLane::FlaggedRecvLane(NetLane& lane, const TaskSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      messages_(setup.messages),
      room_(receiverMessageBytes({setup.view.slotBytes[0], setup.view.slotBytes[1], 0}) / kMostUnderWay) {
  for (Fifo& fifo : fifos_) {
    fifo.arrived = fifo.put = setup.firstStep;
    fifo.report.set(LaneWait::Message, fifo.put);
  }
}

Result<bool> FlaggedRecvLane::post() {
  bool any = false;
  if (refusedForGood_ && taken_ != posted_) return false;
  for (; free_ != 0; any = true) {
    const auto place = refused_.value_or(static_cast<Place>(std::countr_zero(free_)));
    const auto posting = receive(lane_, {messageAt(place), room_, lane_.tag, lane_.registration});
    if (!posting.ok()) {
      refusedForGood_ = true;
      if (taken_ != posted_) return any;   // what is under way may still come
      networkFailed_ = true;
      return posting.status();
    }
    void* const request = posting.value();
    if (request == nullptr) {
      if (!stalled_) tally_.stalled();
      stalled_ = true;
      refused_ = place;
      return any;
    }
    stalled_ = false;
    refused_.reset();
    free_ &= ~(1u << place);
    requests_[place] = request;
    order_[posted_++ % kMostUnderWay] = place;
  }
  return any;
}

Status FlaggedRecvLane::enter(Place place, std::size_t received) {
  MessageHead head;
  if (received >= sizeof(head)) std::memcpy(&head, messageAt(place), sizeof(head));
  Fifo* const fifo = head.protocol < kFlagged ? &fifos_[head.protocol] : nullptr;
  const auto protocol = static_cast<Protocol>(head.protocol);
  const bool right = fifo != nullptr && received == sizeof(head) + head.bytes && head.step == fifo->arrived &&
                     head.bytes <= contentRoom(protocol, view_.slotBytes[head.protocol]);
  if (!right) {
    return fail(ncclRemoteError,
                "{}: a message of {} bytes says that it is step {} of protocol {} with {} bytes of content, and is not "
                "what comes next; messages were lost, cut short or confused on the way",
                path_.text(), received, head.step, head.protocol, head.bytes);
  }
  fifo->placeOf[fifo->arrived++ % kMostUnderWay] = place;
  tally_.posted();
  return {};
}

Result<bool> FlaggedRecvLane::take() {
  bool any = false;
  for (; taken_ != posted_; ++taken_, any = true) {
    const Place place = order_[taken_ % kMostUnderWay];
    const auto over = receivedBy(lane_, requests_[place]);
    if (!over.ok()) {
      networkFailed_ = true;
      return over.status();
    }
    if (over.value() < 0) return any;
    TRY(enter(place, static_cast<std::size_t>(over.value())));
  }
  return any;
}

bool FlaggedRecvLane::put(Protocol protocol) {
  Fifo& fifo = fifos_[static_cast<std::size_t>(protocol)];
  if (fifo.put == fifo.arrived) return false;
  const std::uint64_t head = loadCounter(view_.headOf(protocol));
  const std::uint32_t slotBytes = view_.slotBytes[static_cast<int>(protocol)];
  bool any = false;
  for (; fifo.put != fifo.arrived; ++fifo.put, any = true) {
    const Place place = fifo.placeOf[fifo.put % kMostUnderWay];
    MessageHead message;
    std::memcpy(&message, messageAt(place), sizeof(message));
    if (static_cast<std::int64_t>(fifo.put - head) >= device::kSteps) {
      fifo.report.set(LaneWait::Slot, fifo.put, message.bytes);
      return any;
    }
    std::byte* const slot = view_.slots[static_cast<int>(protocol)] + fifo.put % device::kSteps * slotBytes;
    putLines(protocol, {slot, slotBytes, fifo.put}, message.bytes, messageAt(place) + sizeof(message));
    free_ |= 1u << place;
    tally_.bytes(message.bytes);
    tally_.done();
  }
  fifo.report.set(LaneWait::Message, fifo.put);
  return any;
}

Result<bool> FlaggedRecvLane::advance() {
  ASSIGN(const bool taken, take());
  const bool ll = put(Protocol::LL);
  const bool ll128 = put(Protocol::LL128);
  ASSIGN(const bool posted, post());
  return taken || ll || ll128 || posted;
}

std::size_t receiverMessageBytes(const device::SlotBytes& slotBytes) {
  return kMostUnderWay * std::max(messageRoom(Protocol::LL, slotBytes[0]), messageRoom(Protocol::LL128, slotBytes[1]));
}

NetReceiver::NetReceiver(const TaskSetup& setup) : setup_(setup) {
  if (setup_.simple != nullptr) simple_.emplace(*setup_.simple, setup_, tally_);
  if (setup_.flagged != nullptr) flagged_.emplace(*setup_.flagged, setup_, tally_);
}

/// Receives are posted ahead of what will come: those that nothing comes for end with the connection, in whatever way
/// the network says so. A peer that said goodbye has sent all that it ever will; its word may come a little later.
template <class Lane>
Result<bool> NetReceiver::advanceLane(Lane& lane, LaneEnd& end) {
  if (!end.begun()) {
    auto advanced = lane.advance();
    if (advanced.ok() || !lane.networkFailed()) return advanced;
    end.begin(advanced.status(), "receiving");
  }
  ASSIGN(const bool peerHasLeft, end.settle(setup_));
  return lane.drain(peerHasLeft);
}

Result<bool> NetReceiver::advance() {
  bool any = false;
  if (flagged_) {
    ASSIGN(any, advanceLane(*flagged_, flaggedEnd_));
  }
  if (simple_) {
    ASSIGN(const bool simple, advanceLane(*simple_, simpleEnd_));
    any = any || simple;
  }
  return any;
}

const LaneReport* NetReceiver::reportOf(Protocol protocol) const {
  if (protocol == Protocol::Simple) return simple_ ? &simple_->report() : nullptr;
  return flagged_ ? &flagged_->report(protocol) : nullptr;
}

bool NetReceiver::starves(std::size_t protocol) const {
  const LaneReport* const report = reportOf(static_cast<Protocol>(protocol));
  return report != nullptr && report->wait() == LaneWait::Message;
}

std::string NetReceiver::describe() const {
  const auto shown = factsToShow({reportOf(Protocol::Simple), reportOf(Protocol::LL), reportOf(Protocol::LL128)});
  if (!shown) return setup_.path.direction() + ": no protocol";
  return fmt::format("{}: {}, {}", setup_.path.direction(), shown->place(), shown->waits());
}

}  // namespace tutti::net
