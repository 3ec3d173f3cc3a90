#include "transport/net/send/queue.h"

#include <fmt/format.h>

#include "base/trace.h"
#include "transport/net/lane/tally.h"

namespace tutti::net {

Result<bool> SendQueue::stall() {
  if (!stalled_) tally_.stalled();
  stalled_ = true;
  return false;
}

Result<bool> SendQueue::post(const plugin::NetBuffer& message) {
  if (lane_.underWay == kMostUnderWay) return stall();
  const auto request = lane_.net->isend(lane_.connection, message);
  if (!request.ok()) {
    failedIn_ = "isend";
    return request.status();
  }
  if (request.value() == nullptr) return stall();
  stalled_ = false;
  requests_[sent_ % kMostUnderWay] = request.value();
  traceStep(kNet, "isend {} of connection {}: {} bytes at {}, tag {}, request {}", sent_, fmt::ptr(lane_.connection),
            message.bytes, fmt::ptr(message.data), lane_.tag, fmt::ptr(request.value()));
  skip();
  return true;
}

Result<bool> SendQueue::oldestEnded() {
  const auto over = lane_.net->test(requests_[done_ % kMostUnderWay], {});
  if (!over.ok()) failedIn_ = "test";
  if (over.ok() && over.value())
    traceStep(kNet, "isend {} of connection {} is done", done_, fmt::ptr(lane_.connection));
  return over;
}

void SendQueue::skip() {
  ++sent_;
  ++lane_.underWay;
}

void SendQueue::pop() {
  ++done_;
  --lane_.underWay;
}

}  // namespace tutti::net
