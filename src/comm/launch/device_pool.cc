#include "comm/launch/device_pool.h"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include "comm/launch/implicit_order.h"
#include "gpu/context.h"
#include "gpu/kernels.h"
#include "proxy/engine.h"

namespace tutti::comm {

namespace {

/// Kernels are expensive to load and belong to a device, not to a communicator: the one registry of this module.
struct Pool {
  std::mutex mutex;
  std::map<int, std::weak_ptr<PooledDevice>> devices;
};

Pool& pool() {
  static Pool& instance = *new Pool;  // never destroyed: threads may still run when static objects go
  return instance;
}

int turnOf(void* engine) {
  return static_cast<proxy::ProgressEngine*>(engine)->drive() ? 1 : 0;
}

void leaveOf(void* engine) {
  static_cast<proxy::ProgressEngine*>(engine)->leave();
}

}  // namespace

void EngineHook::install(const gpu::Driver& driver, proxy::ProgressEngine& engine) {
  if (driver.softgpuAddIdleHook == nullptr || driver.softgpuRemoveIdleHook == nullptr) return;
  const int added = driver.softgpuAddIdleHook(&turnOf, &leaveOf, &engine, &ticket_);
  if (added == CUDA_SUCCESS) remove_ = driver.softgpuRemoveIdleHook;
}

EngineHook::~EngineHook() {
  if (remove_ != nullptr) remove_(ticket_);
}

PooledDevice::PooledDevice() = default;
PooledDevice::~PooledDevice() = default;

const gpu::Driver& PooledDevice::driver() const {
  return device->driver();
}

void PooledDevice::runEngineOn(const cpu_set_t& processors) const {
  engine->runOn(processors);
}

Result<std::unique_ptr<proxy::ProgressGroup>> PooledDevice::group(proxy::GroupHooks hooks) const {
  return engine->group(std::move(hooks));
}

Result<ImplicitOrder*> PooledDevice::launchOrder() {
  const std::lock_guard lock(orderMutex_);
  if (order_ == nullptr) {
    ASSIGN(order_, ImplicitOrder::create(*device));
  }
  return order_.get();
}

Result<CUfunction> PooledDevice::kernel(const std::string& name) const {
  return kernels->get(name);
}

Result<std::shared_ptr<PooledDevice>> acquireDevice(const gpu::Driver& driver, int ordinal,
                                                    const gpu::KernelSource& kernels) {
  const std::lock_guard lock(pool().mutex);
  std::weak_ptr<PooledDevice>& place = pool().devices[ordinal];
  if (auto known = place.lock()) return known;
  auto fresh = std::make_shared<PooledDevice>();
  ASSIGN(fresh->device, gpu::Device::create(driver, ordinal));
  ASSIGN(fresh->kernels, gpu::KernelSet::create(*fresh->device, kernels));
  ASSIGN(fresh->engine, proxy::ProgressEngine::create(fmt::format("NCCL Progress{:2}", ordinal)));
  fresh->hook.install(driver, *fresh->engine);
  place = fresh;
  return fresh;
}

}  // namespace tutti::comm
