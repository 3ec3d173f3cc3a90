#include "transport/net/net_send_simple.h"

#include <atomic>

#include "transport/net/net_send_faults.h"
#include "transport/net/net_shared.h"

namespace tutti::net {

using device::Protocol;

SimpleSendLane::SimpleSendLane(NetLane& lane, const TaskSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      seen_(setup.firstStep),
      sent_(setup.firstStep),
      done_(setup.firstStep),
      shared_(setup.shared) {}

Result<NetBuffer> SimpleSendLane::messageOf(std::uint64_t step, Request& request) const {
  const std::uint64_t word = sizeSaid(view_, Protocol::Simple, step);
  const auto bytes = static_cast<std::uint32_t>(word);
  const std::uint32_t slotBytes = view_.slotBytes[static_cast<int>(Protocol::Simple)];
  if (!device::isSizeOf(word, step) || bytes > slotBytes) return notASize(path_, word, step);
  request = {nullptr, bytes, {}};
  NetBuffer message{nullptr, bytes, lane_.tag, lane_.slotRegistration};
  if (view_.pullFrom != nullptr) {
    const std::uint64_t offered =
        std::atomic_ref(view_.pullFrom[step % device::kSteps]).load(std::memory_order_relaxed);
    message.data = reinterpret_cast<void*>(offered);
    if (offered != 0) message.registration = nullptr;
  }
  if (message.data == nullptr && shared_ != nullptr) {
    const auto place = static_cast<std::uint32_t>(loadCounter(view_.placesOf(step)));
    if (!shared_->mayBeOut(place)) return notAPlace(path_, place, step);
    request.place = place;
    message.data = shared_->at(place);
  } else if (message.data == nullptr) {
    message.data = view_.slots[static_cast<int>(Protocol::Simple)] + step % device::kSteps * slotBytes;
  }
  return message;
}

Result<bool> SimpleSendLane::post() {
  bool any = false;
  for (;; ++sent_, any = true) {
    if (sent_ == seen_) seen_ = loadCounter(view_.tailOf(Protocol::Simple));
    if (sent_ == seen_) return any;
    Request made;
    ASSIGN(const NetBuffer message, messageOf(sent_, made));
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
    made.handle = request.value();
    requests_[sent_ % device::kSteps] = made;
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
  const Request& request = requests_[done_ % device::kSteps];
  tally_.bytes(request.bytes);
  tally_.done();
  if (request.place) shared_->giveBack(*request.place);
  storeCounter(view_.headOf(Protocol::Simple), ++done_);
}

Status SimpleSendLane::abandon() {
  while (done_ != sent_) finishOne();
  for (seen_ = loadCounter(view_.tailOf(Protocol::Simple)); sent_ != seen_; ++sent_) {
    Request& request = requests_[sent_ % device::kSteps];
    ASSIGN(const NetBuffer message, messageOf(sent_, request));
    const auto bytes = static_cast<std::uint32_t>(message.bytes);
    if (bytes > 0) return sentToNobody(path_, sent_, bytes);
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

}  // namespace tutti::net
