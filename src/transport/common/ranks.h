// Two ranks as transports see them: how near they are, and their names in messages.
#pragma once

#include <cstdint>
#include <string>

#include "device/direction.h"
#include "topo/machine/peer_info.h"

namespace tutti::transport {

using device::Direction;

/// Why two ranks cannot share memory of their host, for people; empty where they are on one host.
std::string hostObstacle(const topo::PeerInfo& a, const topo::PeerInfo& b);
bool sameProcess(const topo::PeerInfo& a, const topo::PeerInfo& b);
bool sameDevice(const topo::PeerInfo& a, const topo::PeerInfo& b);
/// "rank 3 (host node7, device 1)".
std::string rankText(const topo::PeerInfo& info);
/// "rank 3 (host node7, device 1) with rank 2 (host node7, device 0)", for messages about a connection.
std::string pairText(const topo::PeerInfo& self, const topo::PeerInfo& peer);

}  // namespace tutti::transport
