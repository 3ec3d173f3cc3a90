// The stage of init that makes the channels and whatever drives them.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::topo {
struct RankChannels;
}

namespace tutti::comm {

/// Those channels, the launcher, the proxy's tasks and the stall probe; connects nothing yet.
Status buildChannels(ncclComm& comm, topo::RankChannels channels);

}  // namespace tutti::comm
