#include "transport/net/send/simple.h"

#include <atomic>
#include <cstring>

#include "transport/net/lane/counters.h"
#include "transport/net/lane/send_errors.h"
#include "transport/net/lane/slot_store.h"
#include "transport/net/lane/tally.h"
#include "transport/net/lane/user_registrations.h"

namespace tutti::net {

SimpleSendLane::SimpleSendLane(NetLane& lane, const SendSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      seen_(setup.firstStep),
      queue_(lane, tally, setup.firstStep),
      shared_(setup.shared),
      requests_(trace::Kind::NetSend, stepWords(setup.path, device::Protocol::Simple)),
      events_(std::make_shared<proxy::StepEvents>(setup.firstStep, device::kSteps)) {}

Result<plugin::NetBuffer> SimpleSendLane::messageOf(std::uint64_t step, Message& made) const {
  const std::uint64_t word = sizeSaid(view_, device::Protocol::Simple, step);
  const auto bytes = static_cast<std::uint32_t>(word);
  const std::uint32_t slotBytes = view_.slotBytes[static_cast<int>(device::Protocol::Simple)];
  if (!device::isSizeOf(word, step) || bytes > slotBytes) return notASize(path_, word, step);
  made = {.bytes = bytes};
  plugin::NetBuffer message{nullptr, bytes, lane_.tag, lane_.slotRegistration};
  if (view_.pull.addresses != nullptr) {
    const std::uint64_t offered = std::atomic_ref(*view_.pull.addresses->of(step)).load(std::memory_order_relaxed);
    message.data = reinterpret_cast<void*>(offered);
    made.offered = offered != 0;
    if (made.offered) message.registration = nullptr;
  }
  if (message.data == nullptr && shared_ != nullptr) {
    const auto place = static_cast<std::uint32_t>(loadCounter(view_.words->place.of(step)));
    if (!shared_->mayBeOut(place)) return notAPlace(path_, place, step);
    made.place = place;
    message.data = shared_->at(place);
  } else if (message.data == nullptr) {
    message.data = view_.slots[static_cast<int>(device::Protocol::Simple)] + step % device::kSteps * slotBytes;
  }
  return message;
}

/// Only kernels of the software GPU offer: the host addresses what they do.
Result<bool> SimpleSendLane::settle(plugin::NetBuffer& message, Message& made) {
  if (!made.offered || lane_.user == nullptr) return true;
  made.user = lane_.user->begin(message.data, message.bytes);
  if (made.user) {
    message.registration = made.user->registration;
    return true;
  }
  if (spareTaken_) return false;
  if (spare_.data == nullptr) {
    ASSIGN(spare_, lane_.spare->allocateKept(view_.slotBytes[static_cast<int>(device::Protocol::Simple)]));
  }
  std::memcpy(spare_.data, message.data, message.bytes);
  message.data = spare_.data;
  message.registration = spare_.registration;
  made.spare = spareTaken_ = true;
  return true;
}

void SimpleSendLane::release(const Message& made) {
  if (made.user) lane_.user->end(*made.user);
  if (made.spare) spareTaken_ = false;
}

Result<bool> SimpleSendLane::post() {
  for (bool any = false;; any = true) {
    const std::uint64_t step = queue_.sent();
    if (step == seen_) seen_ = loadCounter(view_.tailOf(device::Protocol::Simple));
    if (step == seen_) return any;
    Message made;
    ASSIGN(plugin::NetBuffer message, messageOf(step, made));
    if (events_->look()) [[unlikely]] {
      events_->setBytes(step, made.bytes);
      events_->follow({proxy::StepEvents::kAtOnce, step + 1, step, queue_.done()});
      if (lane_.net->tellsEvents()) message.events = events_->requestOf(step);
    }
    ASSIGN(bool taken, settle(message, made));
    if (taken) {
      ASSIGN(taken, queue_.post(message));
    }
    if (!taken) {
      requests_.refused();
      release(made);
      report_.set(LaneWait::Network, step, made.bytes);
      return any;
    }
    tally_.posted();
    requests_.posted(step);
    messages_[step % device::kSteps] = made;
  }
}

Result<bool> SimpleSendLane::finish() {
  bool any = false;
  for (; !queue_.empty(); any = true) {
    ASSIGN(const bool over, queue_.oldestEnded());
    if (!over) {
      const std::uint64_t step = queue_.done();
      if (!queue_.stalled()) report_.set(LaneWait::Completion, step, messages_[step % device::kSteps].bytes);
      return any;
    }
    finishOne();
  }
  if (!queue_.stalled()) report_.set(LaneWait::Kernel, queue_.done());
  return any;
}

void SimpleSendLane::finishOne() {
  const Message& message = messages_[queue_.done() % device::kSteps];
  tally_.bytes(message.bytes);
  tally_.done();
  requests_.ended(queue_.done(), message.bytes);
  if (message.place) shared_->giveBack(*message.place);
  release(message);
  queue_.pop();
  storeCounter(view_.headOf(device::Protocol::Simple), queue_.done());
}

Status SimpleSendLane::abandon() {
  while (!queue_.empty()) finishOne();
  seen_ = loadCounter(view_.tailOf(device::Protocol::Simple));
  while (queue_.sent() != seen_) {
    Message& made = messages_[queue_.sent() % device::kSteps];
    TRY(messageOf(queue_.sent(), made).status());
    if (made.bytes > 0) return sentToNobody(path_, queue_.sent(), made.bytes);
    tally_.posted();
    queue_.skip();
    finishOne();
  }
  report_.set(LaneWait::Kernel, queue_.done());
  return {};
}

Result<bool> SimpleSendLane::advance() {
  tell();
  ASSIGN(const bool posted, post());
  if (!posted && queue_.empty()) return false;
  tell();
  ASSIGN(const bool finished, finish());
  tell();
  return posted || finished;
}

void SimpleSendLane::tell() {
  if (!events_->look()) [[likely]]
    return;
  events_->follow({proxy::StepEvents::kAtOnce, queue_.sent(), queue_.sent(), queue_.done()});
}

bool SimpleSendLane::quiet() const {
  return queue_.empty() && loadCounter(view_.tailOf(device::Protocol::Simple)) == queue_.sent();
}

}  // namespace tutti::net
