#include "comm/memory.h"

#include "comm/settings/comm_settings.h"
#include "comm/settings/current_settings.h"
#include "gpu/context.h"
#include "gpu/driver.h"
#include "gpu/vmm.h"

namespace tutti::comm {

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
