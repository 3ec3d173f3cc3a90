// The table of ranks: who they are, as all of them see it. Each stage takes values and a control channel, and can be
// tested alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "topo/machine/peer_info.h"

namespace tutti {
class ControlChannel;
}
namespace tutti::gpu {
class Device;
}

namespace tutti::comm {

struct CommSettings;

/// "rank 3 (host gpu07, pid 4711)".
std::string rankName(const topo::PeerInfo& peer);

/// This rank's own line in the table of ranks.
Result<topo::PeerInfo> describeSelf(const gpu::Device& device, const CommSettings& settings, int rank, int nRanks);

/// Collective: everybody's facts. Refuses, on all ranks alike and by name, ranks that run another version of the
/// library (ncclInvalidUsage), were told another number of ranks, or run on another kind of device.
Result<std::vector<topo::PeerInfo>> gatherPeers(ControlChannel& control, const topo::PeerInfo& self);

/// ncclInvalidUsage, naming both, where two ranks have one GPU.
Status refuseSharedDevices(std::span<const topo::PeerInfo> peers);

/// Whether another rank of this process has the same GPU as `rank`, which indexes `peers`.
bool sharesDeviceInProcess(std::span<const topo::PeerInfo> peers, int rank);

}  // namespace tutti::comm
