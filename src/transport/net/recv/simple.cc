#include "transport/net/recv/simple.h"

#include <span>

#include "base/log.h"
#include "transport/net/lane/counters.h"
#include "transport/net/lane/slot_store.h"
#include "transport/net/lane/tally.h"

namespace tutti::net {

namespace {

/// Steps that profilers may hear of at a time: of shared slots some may have come that no kernel has read yet.
constexpr std::uint32_t kWindow = 2 * device::kSteps;

}  // namespace

SimpleRecvLane::SimpleRecvLane(NetLane& lane, const RecvSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      queue_(lane, tally, setup.firstStep),
      shared_(setup.shared),
      groups_(setup.groups),
      grace_(setup.farewellGrace),
      delivered_(setup.firstStep),
      checked_(setup.firstStep),
      requests_(trace::Kind::NetRecv, stepWords(setup.path, device::Protocol::Simple)),
      sized_(setup.firstStep),
      events_(std::make_shared<proxy::StepEvents>(setup.firstStep, kWindow)) {
  if (groups_ != nullptr) groups_->join(*this);
}

SimpleRecvLane::~SimpleRecvLane() {
  events_->close();
  if (groups_ != nullptr) groups_->leave(*this);
}

plugin::NetBuffer SimpleRecvLane::slotOf(std::uint64_t step) const {
  const auto index = static_cast<int>(device::Protocol::Simple);
  const std::uint32_t slotBytes = view_.slotBytes[index];
  void* const events = events_->on() && lane_.net->tellsEvents() ? events_->requestOf(step) : nullptr;
  if (shared_ != nullptr) {
    const std::uint64_t into = view_.shared.window.bytes == 0 ? 0 : loadCounter(view_.words->into.of(step));
    if (into != 0) {
      const auto bytes = static_cast<std::uint32_t>(loadCounter(view_.words->expected.of(step)));
      return {reinterpret_cast<void*>(into), bytes, lane_.tag, nullptr, events};
    }
    const auto place = static_cast<std::uint32_t>(loadCounter(view_.words->place.of(step)));
    return {shared_->at(place), slotBytes, lane_.tag, lane_.slotRegistration, events};
  }
  return {view_.slots[index] + step % device::kSteps * slotBytes, slotBytes, lane_.tag, lane_.slotRegistration, events};
}

Status SimpleRecvLane::checkSize(std::uint64_t step) const {
  const std::uint64_t word = loadCounter(view_.words->expected.of(step));
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
  for (; checked_ != queue_.done() && static_cast<std::int64_t>(head - checked_) > 0; ++checked_)
    TRY(checkSize(checked_));
  return {};
}

Status SimpleRecvLane::leftInVain(std::uint64_t step, std::uint64_t wanted) const {
  return fail(
      path_.departureCode(),
      "{}: {}, but a kernel here waits for step {} of {} bytes from it; do all ranks call the same operations before "
      "they destroy the communicator?",
      path_.text(), path_.departureText(), step, static_cast<std::uint32_t>(wanted));
}

/// What is posted and what comes may be ahead of the operation that it is for: it is told when that is known.
void SimpleRecvLane::tell() {
  if (!events_->look()) [[likely]]
    return;
  const std::uint64_t head = loadCounter(view_.headOf(device::Protocol::Simple));
  const std::uint64_t arrived = queue_.done() + (received_ ? 1 : 0);
  if (arrived - sized_ > device::kSteps) sized_ = arrived - device::kSteps;
  for (; sized_ != arrived; ++sized_) events_->setBytes(sized_, bytes_[sized_ % device::kSteps]);
  events_->follow({queue_.posted(), arrived, delivered_, head});
}

Result<bool> SimpleRecvLane::drain(bool peerHasLeft) {
  deliver();
  tell();
  TRY(checkUpTo(loadCounter(view_.headOf(device::Protocol::Simple))));
  if (!peerHasLeft) return false;
  const std::uint64_t wanted = loadCounter(view_.words->expected.of(delivered_));
  if (!device::isSizeOf(wanted, delivered_)) return false;
  return leftInVain(delivered_, wanted);
}

bool SimpleRecvLane::isWanted(std::uint64_t step) const {
  if (!lane_.parts || bytes_[step % device::kSteps] != 0) return true;
  const std::uint64_t wanted = loadCounter(view_.words->expected.of(step));
  return device::isSizeOf(wanted, step) && static_cast<std::uint32_t>(wanted) == 0;
}

Status SimpleRecvLane::checkMissing() {
  if (delivered_ == queue_.done()) return {};
  report_.set(LaneWait::Message, delivered_);
  const std::uint64_t wanted = loadCounter(view_.words->expected.of(delivered_));
  if (!device::isSizeOf(wanted, delivered_)) return {};
  if (path_.peerHasLeft()) return leftInVain(delivered_, wanted);
  if (!missingSince_) missingSince_ = SteadyClock::now();
  const bool mayBeFarewell = path_.farewells != nullptr && SteadyClock::now() - *missingSince_ < grace_;
  return mayBeFarewell ? Status() : checkSize(delivered_);
}

bool SimpleRecvLane::ended() const {
  const std::uint64_t head = loadCounter(view_.headOf(device::Protocol::Simple));
  const bool allMeanNothing = !lane_.tellsSizes || delivered_ == head;
  return queue_.empty() && queue_.posted() - head >= device::kSteps && allMeanNothing;
}

bool SimpleRecvLane::mayPost(std::uint64_t head) const {
  const std::uint64_t step = queue_.posted();
  if (shared_ == nullptr) return step - head < device::kSteps;
  return step - queue_.done() < device::kSteps && device::isSizeOf(loadCounter(view_.words->expected.of(step)), step);
}

Result<bool> SimpleRecvLane::post(std::uint64_t head) {
  bool any = false;
  for (; mayPost(head); any = true) {
    ASSIGN(const bool taken, queue_.post(slotOf(queue_.posted())));
    if (!taken) {
      requests_.refused();
      break;
    }
    requests_.posted(queue_.posted() - 1);
  }
  if (queue_.stalled() && queue_.empty()) report_.set(LaneWait::Room, queue_.posted());
  return any;
}

std::optional<AskedReceive> SimpleRecvLane::asked() const {
  if (networkFailed() || !mayPost(0)) return {};
  const std::uint64_t step = queue_.posted();
  const auto turn = static_cast<std::uint32_t>(loadCounter(view_.words->place.of(step)) >> 32);
  return AskedReceive{slotOf(step), device::orderIn(turn), lane_.flushes};
}

void SimpleRecvLane::posted(RecvTicket ticket) {
  tickets_[queue_.posted() % device::kSteps] = ticket;
  requests_.posted(queue_.posted());
  queue_.push();
}

Result<bool> SimpleRecvLane::postGroups() {
  if (!queue_.mayPost()) return false;
  const auto any = groups_->post();
  if (!any.ok()) return queue_.refuse(any.status());
  const bool due = asked().has_value();
  queue_.stall(due && groups_->refused());
  const LaneWait forOthers = queue_.stalled() ? LaneWait::Room : LaneWait::Order;
  if (queue_.empty()) report_.set(due ? forOthers : LaneWait::Kernel, queue_.posted());
  return any;
}

Result<bool> SimpleRecvLane::flushed() {
  if (flush_ == nullptr) {
    plugin::NetBuffer slot = slotOf(queue_.done());
    slot.bytes = bytes_[queue_.done() % device::kSteps];
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
  const std::uint64_t step = queue_.done();
  const std::uint32_t room = view_.slotBytes[static_cast<int>(device::Protocol::Simple)];
  if (!lane_.tellsSizes) bytes = static_cast<int>(room);
  if (static_cast<std::uint32_t>(bytes) > room) {
    return fail(ncclRemoteError, "{}: step {} came with {} bytes, more than the {} of a slot", path_.text(), step,
                bytes, room);
  }
  bytes_[step % device::kSteps] = static_cast<std::uint32_t>(bytes);
  if (bytes != 0 || !lane_.parts) TRY(checkSize(step));
  tally_.posted();
  requests_.ended(step, static_cast<std::uint64_t>(bytes));
  return {};
}

Result<bool> SimpleRecvLane::arrivedInGroup() {
  const RecvTicket ticket = tickets_[queue_.done() % device::kSteps];
  const auto here = groups_->received(ticket);
  if (!here.ok()) return queue_.failed(here.status());
  if (!here.value()) {
    report_.set(groups_->flushing(ticket) ? LaneWait::Flush : LaneWait::Message, queue_.done());
    return false;
  }
  TRY(enter(groups_->take(ticket)));
  return true;
}

Result<bool> SimpleRecvLane::arrived() {
  if (groups_ != nullptr) return arrivedInGroup();
  if (!received_) {
    ASSIGN(const int bytes, queue_.oldest());
    if (bytes < 0) {
      report_.set(LaneWait::Message, queue_.done());
      return false;
    }
    received_ = true;
    TRY(enter(bytes));
  }
  const std::uint32_t received = bytes_[queue_.done() % device::kSteps];
  if (!lane_.flushes || received == 0) return true;
  report_.set(LaneWait::Flush, queue_.done(), received);
  return flushed();
}

bool SimpleRecvLane::deliver() {
  bool any = false;
  for (; delivered_ != queue_.done() && isWanted(delivered_); any = true) {
    tally_.bytes(bytes_[delivered_ % device::kSteps]);
    tally_.done();
    storeCounter(view_.tailOf(device::Protocol::Simple), ++delivered_);
  }
  return any;
}

Result<bool> SimpleRecvLane::take() {
  bool any = deliver();
  for (; !queue_.empty(); any = true) {
    ASSIGN(const bool here, arrived());
    if (!here) return any;
    received_ = false;
    queue_.pop();
    deliver();
  }
  // Of a lane in groups, postGroups() knows.
  if (!queue_.stalled() && groups_ == nullptr) {
    report_.set(shared_ == nullptr ? LaneWait::Slot : LaneWait::Kernel, queue_.done());
  }
  return any;
}

Result<bool> SimpleRecvLane::advance() {
  tell();
  ASSIGN(const bool taken, take());
  TRY(checkMissing());
  // No more is received than was checked: what kernels say of a step, and its size here, stay that long.
  const std::uint64_t head = loadCounter(view_.headOf(device::Protocol::Simple));
  TRY(checkUpTo(head));
  ASSIGN(const bool posted, groups_ != nullptr ? postGroups() : post(head));
  tell();
  return posted || taken;
}

}  // namespace tutti::net
