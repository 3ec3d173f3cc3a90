#include "transport/net/recv/queue.h"

#include "transport/net/lane/tally.h"

#include <span>

namespace tutti::net {

Result<bool> RecvQueue::post(const plugin::NetBuffer& into) {
  if (!mayPost()) return false;
  const auto request = lane_.net->irecv(lane_.connection, std::span(&into, 1));
  if (!request.ok()) return refuse(request.status());
  stall(request.value() == nullptr);
  if (stalled_) return false;
  requests_[posted_++ % kMostUnderWay] = request.value();
  return true;
}

Result<bool> RecvQueue::refuse(Status why) {
  refusedForGood_ = true;
  if (!empty()) return false;
  return failed(why);
}

void RecvQueue::stall(bool now) {
  if (now && !stalled_) tally_.stalled();
  stalled_ = now;
}

Result<int> RecvQueue::oldest() {
  int bytes = 0;
  const auto over = lane_.net->test(requests_[done_ % kMostUnderWay], std::span(&bytes, 1));
  if (!over.ok()) return failed(over.status());
  return over.value() ? bytes : -1;
}

}  // namespace tutti::net
