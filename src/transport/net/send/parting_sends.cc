#include "transport/net/send/parting_sends.h"

#include "base/log.h"

namespace tutti::net {

Result<bool> PartingSends::move() {
  bool any = false;
  for (bool taken = true; taken && queue_.sent() != kMostUnderWay; any = any || taken) {
    ASSIGN(taken, queue_.post(message_));
  }
  for (; !queue_.empty(); queue_.pop(), any = true) {
    ASSIGN(const bool ended, queue_.oldestEnded());
    if (!ended) return any;
  }
  return any;
}

bool PartingSends::advance() {
  if (!begun_ || over()) return false;
  const ErrorsAsInfo nobodyAsks;
  const Result<bool> moved = move();
  failed_ = !moved.ok();
  return moved.ok() && moved.value();
}

}  // namespace tutti::net
