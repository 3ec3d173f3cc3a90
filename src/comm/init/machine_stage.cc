#include "comm/init/machine_stage.h"

#include "base/log.h"
#include "base/threads/cpu_set.h"
#include "comm/agreement/affinity.h"
#include "comm/agreement/own_machine.h"
#include "comm/init/network_stage.h"
#include "comm/launch/device_pool.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "gpu/context.h"
#include "topo/detect/detect.h"

namespace tutti::comm {

Result<OwnMachine> readOwnMachine(const ncclComm& comm) {
  return readMachine(comm.parts.device->device->driver(), comm.settings->topology, nicFacts(comm));
}

void placeEngine(ncclComm& comm, const OwnMachine& machine) {
  if (comm.identity.nRanks == 1) return;
  const Affinity affinity =
      affinityFor(comm.settings->affinity, comm.identity.cudaDevice,
                  processorsNear(machine, static_cast<std::uint64_t>(comm.identity.busId)), ownProcessors());
  if (!affinity.complaint.empty()) info(kEnv, "{}", affinity.complaint);
  if (!affinity.text.empty()) info(kInit, "{}", affinity.text);
  if (affinity.processors) comm.parts.device->runEngineOn(*affinity.processors);
}

}  // namespace tutti::comm
