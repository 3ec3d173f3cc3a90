#include "softgpu/device/device.h"

#include <cstdio>
#include <cstring>
#include <fstream>

#include "softgpu/device/engine.h"
#include "softgpu/device/machine.h"
#include "softgpu/device/topology.h"

namespace tutti::softgpu {
namespace {

constexpr unsigned kFirstBus = 0x10;

std::uint64_t hashText(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ull ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return Random(hash).next();
}

std::string bootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

std::vector<DeviceFacts> describeDevices(const Settings& settings, MachineFile& file) {
  const auto count = static_cast<std::size_t>(settings.devices);
  if (!settings.topology.empty()) {
    file = readMachineFile(settings.topology, settings.host);
    if (file.complaint.empty()) {
      std::vector<DeviceFacts> devices = file.devices;
      if (settings.devicesGiven && devices.size() > count) devices.resize(count);
      return devices;
    }
    std::fprintf(stderr, "softgpu: SOFTGPU_TOPO=%s is ignored: %s\n", settings.topology.c_str(),
                 file.complaint.c_str());
  }
  std::vector<DeviceFacts> devices(count);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].physical = static_cast<int>(i);
    devices[i].domain = static_cast<unsigned>(i / 128);
    devices[i].bus = kFirstBus + static_cast<unsigned>(i % 128);
  }
  return devices;
}

Device::Device(int index, const DeviceFacts& facts, std::uint64_t memoryBytes)
    : index_(index), facts_(facts), memoryBytes_(memoryBytes), window_(facts.physical, memoryBytes) {}

Device::~Device() = default;

std::string Device::busId() const {
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.0", facts_.domain, facts_.bus, facts_.slot);
  return text;
}

CUuuid Device::uuid() const {
  CUuuid uuid;
  const auto host = static_cast<std::uint64_t>(machine().settings.host);
  const std::uint64_t halves[2] = {hashText(bootId(), 1),
                                   hashText(busId(), static_cast<std::uint64_t>(facts_.physical) | host << 32)};
  std::memcpy(uuid.bytes, halves, sizeof(halves));
  return uuid;
}

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
  // Never deleted: its thread goes on.
  auto* engine = new Engine(index_, settings.blockSlots, dice(settings.randomSeed), dice(settings.weakSeed));
  engine->start();
  engine_.store(engine, std::memory_order_release);
  return *engine;
}

bool Device::charge(std::size_t bytes) {
  if (used_.fetch_add(bytes) + bytes <= memoryBytes_ && bytes <= memoryBytes_) return true;
  used_.fetch_sub(bytes);
  return false;
}

CUresult Device::allocate(Context& context, std::size_t size, MemoryKind kind, std::shared_ptr<Allocation>* result) {
  if (!charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto allocation = std::make_shared<Allocation>();
  if (const auto offset = window_.allocate(size); offset.has_value()) {
    allocation->backing = window_.backing();
    allocation->offset = *offset;
  } else {
    allocation->backing = Backing::create(size, facts_.physical);
  }
  if (allocation->backing == nullptr) {
    std::fprintf(stderr, "softgpu: device %d: %zu bytes of memory: %s\n", index_, size, std::strerror(errno));
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

void Device::release(const Allocation& allocation) {
  if (allocation.backing == window_.backing()) window_.free(allocation);
  discharge(allocation.size);
}

}  // namespace tutti::softgpu
