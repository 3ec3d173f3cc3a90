#include "comm/init/plugin_stage.h"

#include <memory>
#include <string>

#include "base/environment.h"
#include "base/settings/params.h"
#include "bootstrap/bootstrap.h"
#include "comm/init/comm_options.h"
#include "comm/init/tuner_stage.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/current_settings.h"
#include "comm/settings/set_by_plugin.h"
#include "comm/state/communicator.h"
#include "plugin/profiler.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// Null: there is none, or it has refused.
std::shared_ptr<plugin::EventSink> profilerOf(const ncclComm& comm) {
  const CommParts& parts = comm.parts;
  return plugin::openProfiler(currentSettings().misc.profilerPlugin, {.commId = parts.bootstrap->commHash(),
                                                                      .name = comm.config.commName,
                                                                      .nNodes = parts.layout->nNodes(),
                                                                      .nRanks = comm.identity.nRanks,
                                                                      .rank = comm.identity.rank});
}

}  // namespace

Status beginPlugins(ncclComm& comm) {
  SetByPlugin& settings = SetByPlugin::process();
  TRY(settings.during(settingsSource(), [&comm]() -> Result<std::string> {
    comm.parts.events = profilerOf(comm);
    return std::string(comm.parts.events ? "a profiler plugin" : "");
  }));
  obeyPlugins(comm);
  if (comm.identity.nRanks == 1) return {};
  TRY(settings.during(settingsSource(), [&comm] { return beginTuner(comm, comm.settings->tuning.plugin); }));
  obeyPlugins(comm);
  return {};
}

}  // namespace tutti::comm
