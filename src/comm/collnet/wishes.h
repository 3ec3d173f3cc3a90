// Whether the ranks of a communicator may have CollNet at all: what follows from the table of ranks, which is the same
// on all of them. Pure.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "topo/machine/peer_info.h"

namespace tutti::topo {
class RankLayout;
}
namespace tutti::transport {
class Transport;
}

namespace tutti::comm {

struct CommSettings;

/// Whether CollNet is enabled on any rank.
bool anybodyWantsCollNet(std::span<const topo::PeerInfo> peers);

/// Why nobody can have it; empty: nothing stands against it so far.
std::string whyNoCollNet(std::span<const topo::PeerInfo> peers, int nNodes, const CommSettings& settings);

/// ncclSystemError where the plugins show different numbers of devices, naming two ranks, unless that is allowed.
Status checkCollNetDevices(std::span<const topo::PeerInfo> peers, const CommSettings& settings);

/// Whether kernels of this rank reach the memory of all ranks of its node. Errors: the driver's.
Result<bool> reachesLocals(std::span<const std::unique_ptr<transport::Transport>> transports,
                           std::span<const topo::PeerInfo> peers, const topo::RankLayout& layout);

}  // namespace tutti::comm
