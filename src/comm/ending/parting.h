// Connections end in peace: where a network wants no receives to be posted when it closes one, both ends see to it
// before (transport/net/lane/parting.h).
#pragma once

#include "base/clock.h"

struct ncclComm;

namespace tutti::comm {

/// How long peers may take for their part. Then connections are closed as they are.
inline constexpr milliseconds kPartingBound{2000};

/// Whether the communicator's connections go with it: nothing has failed, and no graphs replay its operations, or a
/// relative's.
bool closesInPeace(const ncclComm& comm);
/// No kernel uses the communicator's own connections any more; with `family`, nor those that it shares. Peers do the
/// same, or hear of it by this rank's goodbye. Does not wait.
void beginParting(ncclComm& comm, bool family);
/// Until nothing is posted, the bound, or an abort.
void awaitParted(const ncclComm& comm, bool family);
/// A rank has said goodbye whose connections go with it: this rank's part. Any thread that the communicator outlives.
void partFrom(ncclComm& comm, int rank);

}  // namespace tutti::comm
