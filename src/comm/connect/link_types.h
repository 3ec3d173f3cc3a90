// What names a connection between two ranks.
#pragma once

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

}  // namespace tutti::comm
