// Why ranks cannot take part in the network's collectives, told to all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topo/machine/peer_info.h"

namespace tutti {
class ControlChannel;
}

namespace tutti::comm {

/// What one rank has to say.
struct RankReason {
  std::string why;      ///< empty: nothing
  bool failed = false;  ///< something does not work, instead of not being there
};

/// Collective. By rank, each text up to a length that has room for any error. Errors: the exchange's.
Result<std::vector<RankReason>> gatherReasons(ControlChannel& control, const RankReason& own);

/// "rank 2 on host a: why".
std::string reasonText(const topo::PeerInfo& peer, std::string_view why);

}  // namespace tutti::comm
