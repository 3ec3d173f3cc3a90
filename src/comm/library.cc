#include "comm/library.h"

#include "comm/init/trace_stage.h"
#include "comm/settings/comm_settings.h"
#include "gpu/context.h"
#include "gpu/driver.h"
#include "gpu/vmm.h"
#include "plugin/env_source.h"

namespace tutti::comm {

Status startLibraryWithoutCuda() {
  TRY(plugin::startEnvironment());
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
