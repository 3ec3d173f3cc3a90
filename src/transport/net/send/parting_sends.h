// What a sender answers receives with that its peer has posted in vain.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "transport/net/lane/path.h"
#include "transport/net/send/queue.h"

namespace tutti::net {

/// As many messages as a receiver at rest has posted on one network connection. Nothing else may be under way there.
class PartingSends {
 public:
  /// What the references name must outlive it. `message`: what each of them is.
  PartingSends(NetLane& lane, Tally& tally, const plugin::NetBuffer& message)
      : queue_(lane, tally, 0), message_(message) {}
  /// From then on messages are sent; `message` is as it should be.
  void begin() { begun_ = true; }
  bool begun() const { return begun_; }
  /// Goes on without waiting; whether there was anything to do. A network that fails has no receives to be answered.
  bool advance();
  bool over() const { return failed_ || queue_.done() == kMostUnderWay; }

 private:
  Result<bool> move();

  SendQueue queue_;
  plugin::NetBuffer message_;
  bool begun_ = false;
  bool failed_ = false;
};

}  // namespace tutti::net
