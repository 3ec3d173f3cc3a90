#include "comm/init/channels/launcher_stage.h"

#include <fmt/format.h>
#include <utility>

#include "base/log.h"
#include "comm/agreement/peer_table.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/graph_refs.h"
#include "comm/launch/launch.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "gpu/context.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

constexpr int kFirstWithDomains = 90;  ///< compute capability with memory synchronization domains

/// Ranks that share a device wait for each other's kernels: in a graph, none of them may wait for another's end.
bool mayBeOrdered(const ncclComm& comm) {
  if (!sharesDeviceInProcess(comm.parts.peers, comm.identity.rank)) return true;
  info(kInit, "comm {}: launchOrderImplicit has no effect: other ranks of the process are on device {} as well",
       fmt::ptr(&comm), comm.parts.device->device->ordinal());
  return false;
}

/// graphUsageMode 2: graphs and launches are ordered among each other; 0 and 1 leave that to the application, which may
/// then do without any order inside a graph, too. A family has one order for all, whatever its members' modes.
Result<LaunchRules> launchRules(ncclComm& comm) {
  const bool mix = comm.config.values.graphUsageMode == 2;
  LaunchRules rules{
      .mix = mix, .orderWithin = mix || comm.config.values.graphStreamOrdering != 0, .holds = comm.graphs.get()};
  rules.marks = comm.identity.nRanks > 1 && comm.options.stall.report > milliseconds(0);
  const gpu::Device& device = *comm.parts.device->device;
  rules.remoteDomain = comm.options.remoteDomain && device.facts().computeCapability >= kFirstWithDomains &&
                       device.driver().cuLaunchKernelEx != nullptr;
  if (comm.config.values.launchOrderImplicit != 0 && mayBeOrdered(comm)) {
    ASSIGN(rules.across, comm.parts.device->launchOrder());
  }
  if (comm.membership->family) rules.shared = comm.membership->family->order();
  return rules;
}

}  // namespace

Status makeLauncher(ncclComm& comm) {
  ASSIGN(LaunchRules rules, launchRules(comm));
  ASSIGN(comm.parts.launcher, Launcher::create(*comm.parts.device->device, std::move(rules)));
  return {};
}

}  // namespace tutti::comm
