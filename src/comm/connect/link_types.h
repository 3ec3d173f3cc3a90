// What names a connection between two ranks, and what it had to do without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/plan/channel_mask.h"
#include "device/conn_view.h"
#include "device/direction.h"

namespace tutti::comm {

using device::Direction;

/// A wish for connections of one kind to one peer in one direction, on some channels.
struct LinkRequest {
  int peer = -1;
  device::Direction direction = device::Direction::Send;
  device::ConnKind kind = device::ConnKind::Graph;
  ChannelMask channels = 1;
  friend bool operator==(const LinkRequest&, const LinkRequest&) = default;
};

/// Connections that were opened once, and by what.
struct KnownLink {
  LinkRequest request;
  std::size_t transport = 0;  ///< its number in the list
};

/// Why a connection goes by a later transport than the best one of the list.
struct Fallback {
  /// On whose side those failed that were tried. Peer: there or between the two.
  enum class Side : std::uint8_t { None, Here, Peer };
  Side side = Side::None;
  std::string peer;     ///< who is at the other end: "rank 1 (host gpu07, pid 4242)"
  std::string reasons;  ///< why each of the earlier ones is out
};

}  // namespace tutti::comm
