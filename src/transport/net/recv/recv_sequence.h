// Whose turn it is: of the messages that come from one peer on several channels, the one whose receives are posted now.
#pragma once

#include <cstdint>

#include "device/recv_order.h"

namespace tutti::net {

/// Receives of a message are posted when all receives of the messages before it have been, on whatever channels; those
/// of one message in any order. Kernels ask in that order on each channel, and a launch asks only when all of the one
/// before it has come. Used by one thread at a time.
class RecvSequence {
 public:
  bool isNext(const device::RecvOrder& turn) const { return turn.number == current_; }
  /// A receive was posted, whose turn it was.
  void posted(const device::RecvOrder& turn) {
    if (!turn.ends || ++ended_ < turn.parts) return;
    ended_ = 0;
    current_ = turn.last ? 0U : current_ + 1U;
  }

 private:
  std::uint32_t current_ = 0;
  std::uint32_t ended_ = 0;  ///< channels on which all receives of this message have been posted
};

}  // namespace tutti::net
