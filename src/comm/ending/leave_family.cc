#include "comm/ending/leave_family.h"

#include "base/clock.h"
#include "comm/connect/shared_connections.h"
#include "comm/launch/device_pool.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "gpu/context.h"

namespace tutti::comm {

bool leaveFamily(const ncclComm& comm) {
  constexpr milliseconds kPatience{2000};
  Family* const family = comm.membership->family.get();
  if (family == nullptr) return false;
  const bool last = family->leave(comm);
  family->connections()->tend();
  if (!last || !comm.parts.device) return false;
  if (family->failed() || !family->complete()) return false;
  const Result<gpu::ContextGuard> context = comm.parts.device->device->enter();
  if (context.ok()) family->connections()->settle(*comm.parts.device->device, describeComm(comm), kPatience).ignore();
  return true;
}

bool outlivedByFamily(const ncclComm& comm) {
  Family* const family = comm.membership->family.get();
  const bool others = family != nullptr && family->outlives(comm);
  if (others) family->connections()->tend();
  return others;
}

}  // namespace tutti::comm
