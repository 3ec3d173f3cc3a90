#include "comm/device_pool.h"

#include <map>
#include <mutex>

#include <fmt/format.h>

namespace tutti {

namespace {

/// Kernels are expensive to load and belong to a device, not to a communicator: the one registry of this module.
struct Pool {
  std::mutex mutex;
  std::map<int, std::weak_ptr<PooledDevice>> devices;
};

Pool& pool() {
  static Pool& instance = *new Pool;   // never destroyed: threads may still run when static objects go
  return instance;
}

}  // namespace

Result<std::shared_ptr<PooledDevice>> acquireDevice(const Driver& driver, int ordinal,
                                                    const std::string& hostKernelsPath) {
  const std::lock_guard lock(pool().mutex);
  std::weak_ptr<PooledDevice>& place = pool().devices[ordinal];
  if (auto known = place.lock()) return known;
  auto fresh = std::make_shared<PooledDevice>();
  ASSIGN(fresh->device, Device::create(driver, ordinal));
  ASSIGN(fresh->kernels, KernelSet::create(*fresh->device, hostKernelsPath));
  ASSIGN(fresh->engine, ProgressEngine::create(fmt::format("NCCL Progress{:2}", ordinal)));
  place = fresh;
  return fresh;
}

}  // namespace tutti
