#include "comm/library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/environment.h"
#include "base/host.h"
#include "base/settings/params.h"
#include "comm/diagnosis/init_stall.h"
#include "comm/ending/watching.h"
#include "comm/init/trace_stage.h"
#include "comm/settings/current_settings.h"
#include "gpu/driver.h"
#include "plugin/env_source.h"

namespace tutti::comm {

namespace {

/// What an env plugin is begun by, under the watch. The watch reads no settings but from the environment: nobody else
/// answers yet.
Status beginEnvPlugin(const plugin::EnvSource::Call& call) {
  const Params told = Params().forCommunicator(processEnvironment());
  InitStall stall(
      {.who = fmt::format("process {} on host {}", ::getpid(), hostName()),
       .function = "the start of the library",
       .limits = {std::chrono::seconds(told.misc.stallSec), std::chrono::seconds(told.misc.stallAlarmSec)}});
  stall.enter("env plugin");
  const WatchedInit watched(stall, "");
  return call();
}

}  // namespace

Status startLibraryWithoutCuda() {
  TRY(plugin::startEnvironment(beginEnvPlugin));
  readCommSettings();
  startTrace(-1);
  return {};
}

Status startLibrary() {
  TRY(startLibraryWithoutCuda());
  TRY(gpu::loadDriver());
  return {};
}

}  // namespace tutti::comm
