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
#include "comm/settings/comm_settings.h"
#include "gpu/context.h"
#include "gpu/driver.h"
#include "gpu/vmm.h"
#include "plugin/env_source.h"

namespace tutti::comm {

namespace {

/// An env plugin's init, under the watch. The watch reads no settings but from the environment: nobody else answers
/// yet.
Status initEnvPlugin(const plugin::EnvSource::Call& init) {
  const Params told = Params().forCommunicator(processEnvironment());
  InitStall stall(
      {.who = fmt::format("process {} on host {}", ::getpid(), hostName()),
       .function = "the start of the library",
       .limits = {std::chrono::seconds(told.misc.stallSec), std::chrono::seconds(told.misc.stallAlarmSec)}});
  stall.enter("env plugin");
  const WatchedInit watched(stall, "");
  return init();
}

}  // namespace

Status startLibraryWithoutCuda() {
  TRY(plugin::startEnvironment(initEnvPlugin));
  readCommSettings();
  startTrace(-1);
  return {};
}

Status startLibrary() {
  TRY(startLibraryWithoutCuda());
  TRY(gpu::loadDriver());
  return {};
}

Status memAlloc(void** pointer, std::size_t bytes) {
  ASSIGN(const gpu::Driver* driver, gpu::loadDriver());
  ASSIGN(const int device, gpu::currentDevice(*driver));
  ASSIGN(*pointer, gpu::allocateShared(*driver, device, bytes, currentCommSettings().allowVmm));
  return {};
}

Status memFree(void* pointer) {
  ASSIGN(const gpu::Driver* driver, gpu::loadDriver());
  return gpu::freeShared(*driver, pointer, currentCommSettings().allowVmm);
}

}  // namespace tutti::comm
