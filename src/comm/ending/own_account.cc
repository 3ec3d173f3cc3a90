#include "comm/ending/own_account.h"

#include "comm/diagnosis/call_exchange.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

RankAccount accountWithCalls(const ncclComm& comm) {
  return accountOf(*comm.parts.launcher, &comm.calls->log());
}

}  // namespace tutti::comm
