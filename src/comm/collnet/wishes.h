// Whether the ranks of a communicator may have CollNet at all: what follows from the table of ranks, which is the same
// on all of them. Pure.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "comm/collnet/reasons.h"
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

/// What stands against it, for all ranks alike.
struct CollNetObstacle {
  std::string why;        ///< empty: nothing does so far
  int lacking = -1;       ///< the rank with the fewest devices, where that is what stands against it
  bool mismatch = false;  ///< ranks differ in what they should have alike: nobody can have wanted that
};

CollNetObstacle collNetObstacle(std::span<const topo::PeerInfo> peers, int nNodes, const CommSettings& settings);

/// An obstacle in full words, and whether somebody should hear of it because something is wrong. `reasons`: what each
/// rank's network says of devices that it lacks; empty where none does.
RankReason explained(const CollNetObstacle& obstacle, std::span<const topo::PeerInfo> peers,
                     std::span<const RankReason> reasons);

/// Whether kernels of this rank reach the memory of all ranks of its node. Errors: the driver's.
Result<bool> reachesLocals(std::span<const std::unique_ptr<transport::Transport>> transports,
                           std::span<const topo::PeerInfo> peers, const topo::RankLayout& layout);

}  // namespace tutti::comm
