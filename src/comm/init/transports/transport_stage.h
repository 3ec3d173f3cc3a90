// The stage of init that makes the transports between ranks.
#pragma once

struct ncclComm;

namespace tutti::comm {

/// The transports, best first; they need the table of ranks.
void makeTransports(ncclComm& comm);

}  // namespace tutti::comm
