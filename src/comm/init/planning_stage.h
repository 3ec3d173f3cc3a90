// The stage of init in which the ranks agree on the numbers that they plan with.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct CollNetFacts;
struct CommGraphs;

/// Collective: sets what operations are planned with (CommParts::planning) and the slots of connections for messages
/// over the network; the number of channels. Errors: ncclInvalidUsage on all ranks alike where a setting differs that
/// must not.
Result<int> agreeOnPlanning(ncclComm& comm, const CommGraphs& graphs);

/// What a communicator's lanes to a network that reduces are like; the same on all ranks.
struct CollNetShape {
  int nChannels = 1;
  std::uint32_t slotBytes = 0;  ///< of a lane: what every connection on the way has room for
};
CollNetShape collNetShape(const ncclComm& comm);

/// Operations are planned with that network from now on, and it is said in the log what they are planned with. `facts`:
/// without speeds.
void planWithCollNet(ncclComm& comm, const CommGraphs& graphs, CollNetFacts facts);
/// … without it, for a reason that is told to whoever insists on it.
void planWithoutCollNet(ncclComm& comm, std::string why);

}  // namespace tutti::comm
