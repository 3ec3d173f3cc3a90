// What the ends of a communicator's connections over a network have in common.
#pragma once

#include "transport/net/endpoint/sharing.h"
#include "transport/net/lane/shared_slots.h"

namespace tutti::net {

/// Of one communicator, or of a family of them that use their connections in turn: then a kernel of any of them finds
/// all messages of a channel in one ring of slots, and those of a peer in one order. Members as they say.
struct NetCommons {
  SharedPools pools;
  ConnectionSharing joins;
};

}  // namespace tutti::net
