// What a receiver says of whose turn a receive is (device/recv_sequence.h), as words that kernels and hosts exchange.
#pragma once

#include <cstdint>

#include "device/conn_view.h"

namespace tutti::device {

/// P2pWork::recvOrder, and the upper half of what a receiver says in RecvWords::place.
struct RecvOrder {
  std::uint8_t number = 0;  ///< among the messages of this peer in the launch that come by the Simple protocol
  std::uint8_t parts = 0;   ///< channels that receive something of it
  bool last = false;        ///< of those messages
  bool ends = false;        ///< the channel asks for nothing more of it
};

inline constexpr std::uint32_t kOrderLast = 1U << 16;
inline constexpr std::uint32_t kOrderEnds = 1U << 17;

TUTTI_PURE std::uint32_t orderWord(const RecvOrder& turn) {
  return std::uint32_t{turn.number} | std::uint32_t{turn.parts} << 8 | (turn.last ? kOrderLast : 0) |
         (turn.ends ? kOrderEnds : 0);
}
TUTTI_PURE RecvOrder orderIn(std::uint32_t word) {
  return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8), (word & kOrderLast) != 0,
          (word & kOrderEnds) != 0};
}

/// What a receiver says of a step: the shared slot that it has, and whose turn it is to be received.
TUTTI_PURE std::uint64_t askedPlace(std::uint32_t slot, std::uint32_t turn, bool ends) {
  return std::uint64_t{turn | (ends ? kOrderEnds : 0)} << 32 | slot;
}

}  // namespace tutti::device
