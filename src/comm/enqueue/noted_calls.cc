#include "comm/enqueue/noted_calls.h"

#include <optional>
#include <utility>

#include "comm/diagnosis/call_exchange.h"
#include "comm/enqueue/group_calls.h"
#include "comm/plan/op.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

constexpr std::size_t kCallsKept = 1024;

template <class T>
void forgetAll(std::vector<T>& calls) {
  calls.clear();
  if (calls.capacity() > kCallsKept) calls.shrink_to_fit();
}

}  // namespace

void NotedCalls::begin(ncclComm& comm) {
  comm_ = &comm;
  forgetAll(calls_);
  forgetAll(messages_);
  noted_ = Noted::No;
}

void NotedCalls::add(const Op& op) {
  if (const std::optional<Call> call = callOf(op)) calls_.push_back(*call);
  if (const auto message = messageOf(op); message && message->peer != comm_->identity.rank) {
    messages_.push_back(*message);
  }
}

void NotedCalls::note(bool captured) {
  if (noted_ != Noted::No || comm_->identity.nRanks == 1) return;
  noted_ = captured ? Noted::InGraph : Noted::Yes;
  CallLog& log = comm_->calls->log();
  if (!calls_.empty()) captured ? log.addCaptured(calls_) : log.add(calls_);
  MessageLog& messages = comm_->calls->messages();
  if (!messages_.empty()) captured ? messages.giveUp() : messages.add(messages_);
}

void NotedCalls::forget() {
  const Noted noted = std::exchange(noted_, Noted::No);
  if (noted == Noted::No) return;
  if (!calls_.empty()) comm_->calls->log().giveUp(noted == Noted::Yes ? calls_.size() : 0);
  if (!messages_.empty()) comm_->calls->messages().giveUp();
}

LaunchedCall NotedCalls::launched(const Op& first) const {
  const bool messages = calls_.empty();
  const ApiFunc function = messages ? first.func : calls_.front().func;
  return {comm_->calls->log().called(), static_cast<std::uint8_t>(function), messages};
}

bool NotedCalls::mustCompare() const {
  return comm_->options.checkCalls && comm_->identity.nRanks > 1 && !calls_.empty();
}

Status NotedCalls::compareAll() const {
  CallLog& log = comm_->calls->log();
  log.begin(calls_);
  const Status compared = compareGroup(*comm_, calls_);
  log.begin({});
  return compared;
}

}  // namespace tutti::comm
