#include "comm/init/device_stage.h"

#include "comm/launch/device_pool.h"
#include "comm/state/abort_word.h"
#include "comm/state/communicator.h"
#include "gpu/driver.h"

namespace tutti::comm {

Status openDevice(ncclComm& comm) {
  ASSIGN(const gpu::Driver* driver, gpu::loadDriver());
  ASSIGN(comm.parts.device, acquireDevice(*driver, comm.identity.cudaDevice, comm.options.kernels));
  ASSIGN(comm.parts.abortWord, AbortWord::create(*comm.parts.device->device, comm.abort));
  return {};
}

Result<gpu::ContextGuard> enterDevice(const ncclComm& comm) {
  return comm.parts.device->device->enter();
}

}  // namespace tutti::comm
