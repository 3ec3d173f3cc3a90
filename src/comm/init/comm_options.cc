#include "comm/init/comm_options.h"

#include <utility>

#include "comm/settings/comm_settings.h"
#include "comm/settings/current_settings.h"
#include "comm/settings/set_by_plugin.h"

namespace tutti::comm {

CommOptions optionsFrom(const CommSettings& settings) {
  return {.timeout = settings.bootstrap.timeout,
          .peerTimeout = settings.bootstrap.peerTimeout,
          .stall = settings.stall,
          .reportAfter = settings.reportAfter,
          .allowRanksOfOneDevice = settings.allowRanksOfOneDevice,
          .checkPointers = settings.checkPointers,
          .checkOverlap = settings.checkOverlap,
          .checkCalls = settings.checkCalls,
          .connectAtInit = settings.connectAtInit,
          .memoryManaged = settings.memoryManaged,
          .remoteDomain = settings.remoteDomain,
          .kernels = settings.kernels};
}

void obeyPlugins(ncclComm& comm) {
  if (SetByPlugin::process().names().empty()) return;
  CommSettings now;
  SetByPlugin::process().undisturbed([&now] { now = currentCommSettings(); });
  comm.options = optionsFrom(now);
  comm.settings = std::make_shared<const CommSettings>(std::move(now));
}

}  // namespace tutti::comm
