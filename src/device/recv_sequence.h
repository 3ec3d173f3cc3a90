// In which order receives of messages are posted that come from one peer on several channels: message by message.
//
// Each channel has a crew of its own, and one may be far ahead of another. A network connection that channels share
// matches messages with receives in the order in which these were posted: a receive for a later message must not stand
// in front of one for an earlier message, which the sender may have to get rid of before it comes to the later one
// (docs/network.md). So a crew says with each receive that it asks for which message it belongs to. Messages are
// numbered within a launch: all of one launch have been received before the next one asks.
#pragma once

#include <cstdint>

#include "device/partition.h"
#include "device/recv_order.h"
#include "device/work.h"

namespace tutti::device {

static_assert(kMaxWorksPerLaunch <= 256, "messages of a launch are numbered by a byte");

/// The share of a channel in a message.
TUTTI_PURE Part messagePart(const P2pWork& work, std::uint64_t bytes, unsigned channel) {
  return channelPart(bytes, 1, work.channelHi - work.channelLo + 1u, channel - work.channelLo);
}

/// Channels that receive something of a message; one of nothing takes a slot of the first channel.
TUTTI_PURE std::uint8_t receivingParts(const P2pWork& work) {
  if (work.recvBytes == 0) return 1;
  std::uint8_t parts = 0;
  for (unsigned channel = work.channelLo; channel <= work.channelHi; ++channel) {
    if (messagePart(work, work.recvBytes, channel).count > 0) ++parts;
  }
  return parts;
}

/// Fills in the turns of the messages that `rank` receives in one launch.
inline void numberReceives(P2pWork* works, std::size_t nWorks, int rank) {
  const auto takesTurn = [&](const P2pWork& work) {
    return work.recvPeer >= 0 && work.recvPeer != rank && work.recvProtocol == Protocol::Simple;
  };
  for (std::size_t i = 0; i < nWorks; ++i) {
    if (!takesTurn(works[i])) continue;
    RecvOrder turn{.number = 0, .parts = receivingParts(works[i]), .last = true};
    for (std::size_t j = 0; j < nWorks; ++j) {
      if (j == i || !takesTurn(works[j]) || works[j].recvPeer != works[i].recvPeer) continue;
      if (j < i) ++turn.number;
      if (j > i) turn.last = false;
    }
    works[i].recvOrder = orderWord(turn);
  }
}

}  // namespace tutti::device
