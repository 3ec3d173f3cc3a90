#include "transport/net/recv/queue.h"

#include <fmt/format.h>

#include "base/trace.h"
#include "transport/net/lane/tally.h"

#include <span>

namespace tutti::net {

Result<bool> RecvQueue::post(const plugin::NetBuffer& into) {
  if (!mayPost()) return false;
  const auto request = lane_.net->irecv(lane_.connection, std::span(&into, 1));
  if (!request.ok()) return refuse(request.status());
  stall(request.value() == nullptr);
  if (stalled_) return false;
  traceStep(kNet, "irecv {} of connection {}: up to {} bytes at {}, tag {}, request {}", posted_,
            fmt::ptr(lane_.connection), into.bytes, fmt::ptr(into.data), lane_.tag, fmt::ptr(request.value()));
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
  if (over.value()) {
    traceStep(kNet, "irecv {} of connection {} is done: {} bytes", done_, fmt::ptr(lane_.connection), bytes);
  }
  return over.value() ? bytes : -1;
}

}  // namespace tutti::net
