#include "transport/net/net_send_simple.h"

#include <atomic>

#include "transport/net/net_send_faults.h"

namespace tutti::net {

using device::Protocol;

SimpleSendLane::SimpleSendLane(NetLane& lane, const TaskSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      seen_(setup.firstStep),
      sent_(setup.firstStep),
      done_(setup.firstStep) {}

Result<NetBuffer> SimpleSendLane::messageOf(std::uint64_t step) const {
  const std::uint64_t word = sizeSaid(view_, Protocol::Simple, step);
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

}  // namespace tutti::net
