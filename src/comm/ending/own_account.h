// What this rank of a communicator tells the others as it leaves.
#pragma once

#include "comm/ending/rank_account.h"

struct ncclComm;

namespace tutti::comm {

/// What it has launched, with its last collectives. `comm` has a launcher.
RankAccount accountWithCalls(const ncclComm& comm);

}  // namespace tutti::comm
