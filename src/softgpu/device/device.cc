#include "softgpu/device/device.h"

#include <cerrno>
#include <cstring>

#include "softgpu/device/engine.h"
#include "softgpu/device/machine.h"
#include "softgpu/exec/random.h"
#include "softgpu/say.h"

namespace tutti::softgpu {

Device::Device(int index, const DeviceFacts& facts, const CUuuid& uuid, const Settings& settings)
    : index_(index),
      facts_(facts),
      uuid_(uuid),
      nicReach_(settings.nicReach),
      memoryBytes_(settings.memoryBytes),
      window_(facts.physical, settings.memoryBytes) {}

Device::~Device() = default;

Context& Device::primary() {
  std::lock_guard<std::mutex> guard(primaryLock_);  // not startLock_: that one is taken inside the machine's lock
  if (primary_ == nullptr) {
    auto context = std::make_unique<Context>(*this, true);
    context->makeLegacyStream();
    primary_ = context.get();
    std::lock_guard<std::mutex> contexts(machine().lock);
    machine().contexts.push_back(std::move(context));
  }
  return *primary_;
}

Engine& Device::engine() {
  if (Engine* started = startedEngine()) return *started;
  std::lock_guard<std::mutex> guard(startLock_);
  if (Engine* started = startedEngine()) return *started;
  const Settings& settings = machine().settings;
  const auto dice = [this](const std::optional<std::uint64_t>& seed) -> std::unique_ptr<Random> {
    if (!seed.has_value()) return nullptr;
    return std::make_unique<Random>(*seed * 1000003 + static_cast<std::uint64_t>(facts_.physical));
  };
  auto engine =
      std::make_unique<Engine>(index_, settings.blockSlots, dice(settings.randomSeed), dice(settings.weakSeed));
  engine->start();
  // Never deleted: its thread goes on.
  engine_.store(engine.release(), std::memory_order_release);
  return *startedEngine();
}

bool Device::charge(std::size_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (bytes > memoryBytes_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

CUresult Device::allocate(Context& context, std::size_t size, MemoryKind kind, std::shared_ptr<Allocation>* result) {
  if (!charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto allocation = std::make_shared<Allocation>();
  // What stands for a dma-buf is a file whose first byte is the first of the memory: a window's is not.
  const bool inWindow = nicReach_ != NicReach::DmaBufs;
  if (const auto offset = inWindow ? window_.allocate(size) : std::nullopt; offset.has_value()) {
    allocation->backing = window_.backing();
    allocation->offset = *offset;
  } else {
    allocation->backing = Backing::create(size, facts_.physical);
  }
  if (allocation->backing == nullptr) {
    say("device %d: %zu bytes of memory: %s", index_, size, std::strerror(errno));
    discharge(size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  allocation->base = reinterpret_cast<std::uintptr_t>(allocation->backing->base()) + allocation->offset;
  allocation->size = size;
  allocation->kind = kind;
  allocation->device = index_;
  allocation->context = &context;
  allocation->id = machine().memory.nextId();
  machine().memory.insert(allocation);
  *result = std::move(allocation);
  return CUDA_SUCCESS;
}

std::shared_ptr<Pool> Device::currentPool() {
  const std::lock_guard<std::mutex> guard(poolLock_);
  return currentPool_;
}

void Device::setCurrentPool(std::shared_ptr<Pool> pool) {
  const std::lock_guard<std::mutex> guard(poolLock_);
  currentPool_ = std::move(pool);
}

void Device::forgetPool(const Pool& pool) {
  const std::lock_guard<std::mutex> guard(poolLock_);
  if (currentPool_.get() == &pool) currentPool_.reset();
}

void Device::release(const Allocation& allocation) {
  if (allocation.backing == window_.backing()) window_.free(allocation);
  discharge(allocation.size);
  if (allocation.pool == nullptr) return;
  allocation.pool->used.subtract(allocation.size);
  allocation.pool->reserved.subtract(allocation.size);
}

}  // namespace tutti::softgpu
