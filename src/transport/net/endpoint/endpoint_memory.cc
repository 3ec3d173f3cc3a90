// The memory of one end of a connection over a network, and what the network is told of it.
#include <cstring>

#include "base/log.h"
#include "transport/net/endpoint/endpoint.h"
#include "transport/net/lane/probe.h"

namespace tutti::net {

Status NetEndpoint::joinPool() {
  const std::uint32_t slotBytes = path_.link.slotBytes[static_cast<std::size_t>(device::Protocol::Simple)];
  if (!sharesSlots()) return {};
  const SharedShape shape{options_.sharedSlots, slotBytes, slots_.onDevice};
  ASSIGN(shared_, commons_.pools.get(device_, path_.link.channel, path_.direction, shape, options_.ledger));
  if (shared_ != nullptr && slots_.onDevice && shared_->deviceSlots() == nullptr) leaveDevice();
  if (shared_ != nullptr || groups_ == nullptr) return {};
  return fail(
      ncclSystemError,
      "{}: other connections of the channel share slots in GPU memory, and the network does not take that memory "
      "for this one. NCCL_NET_GDR_LEVEL=LOC keeps all slots in host memory",
      path_.text());
}

void NetEndpoint::leaveDevice() {
  slots_ = {};
  describe();
  for (std::size_t j = 0; j < kConnections; ++j) {
    const bool own = j != kSimple || sharedConnection_ == nullptr;  // others may stay on the device
    if (connections_[j] != nullptr && own) connections_[j]->describe(path_.description);
  }
}

const gpu::DeviceBuffer* NetEndpoint::deviceSlots() const {
  return shared_ ? shared_->deviceSlots() : memory_->deviceSlots();
}

Status NetEndpoint::allocateThere() {
  TRY(joinPool());
  ASSIGN(window_, windowForNetwork());
  ASSIGN(EndMemory memory, EndMemory::create(device_, path_, slots_.onDevice, shared_.get(), window_, options_.ledger));
  memory_ = std::make_shared<EndMemory>(std::move(memory));
  return {};
}

bool NetEndpoint::takesDeviceSlots() {
  if (deviceSlots() == nullptr) return true;
  const ErrorsAsInfo harmless;
  const auto taken = connections_[kSimple]->registerOnDevice(*deviceSlots(), device_, slots_);
  if (taken.ok()) lanes_[kSimple].slotRegistration = taken.value();
  if (!taken.ok()) {
    info(kInit | kNet, "{}: slots lie in host memory, for the network refuses those in GPU memory: {}", path_.text(),
         lastErrorText());
  }
  return taken.ok();
}

Status NetEndpoint::allocate() {
  TRY(allocateThere());
  if (takesDeviceSlots()) return {};
  memory_.reset();
  shared_.reset();
  leaveDevice();
  return allocateThere();
}

Status NetEndpoint::prepare() {
  TRY(allocate());
  if (sharedConnection_ != nullptr) {
    sharedConnection_->connection->keep(shared_);
    sharedConnection_->connection->keep(memory_);
  }
  if (window_.registeredOnly) {
    lanes_[kSimple].user = &connections_[kSimple]->sendRegistered(options_.registered, device_, slots_);
    lanes_[kSimple].spare = connections_[kSimple].get();
  }
  if (groups_ != nullptr) groups_->use(*lanes_[kSimple].net, connections_[kSimple]->connection());
  for (std::size_t j = 0; j < kConnections; ++j) {
    if (connections_[j] == nullptr) continue;
    NetLane& lane = lanes_[j];
    lane.connection = connections_[j]->connection();
    ASSIGN(lane.registration,
           connections_[j]->registerMemory(memory_->host(), memory_->hostBytes(), plugin::PtrKind::Host));
    if (j != kSimple || deviceSlots() == nullptr) lane.slotRegistration = lane.registration;
    const ProbeMessage probe = probeOf(path_, j);
    if (path_.direction == device::Direction::Send) std::memcpy(probeAt(j), &probe, sizeof(probe));
  }
  return registerHostSlots();
}

Result<NetWindow> NetEndpoint::windowForNetwork() const {
  const bool sends = path_.direction == device::Direction::Send;
  NetWindow window;
  window.registeredOnly = sends && options_.registered != nullptr && connections_[kSimple] != nullptr;
  const bool anything = options_.inPlace && (sends || shared_ != nullptr) && !slots_.onDevice;
  if (!anything && !window.registeredOnly) return window;
  ASSIGN(window.memory, gpu::memoryWindow(device_));
  return window;
}

Status NetEndpoint::registerHostSlots() {
  NetLane& lane = lanes_[kSimple];
  lane.flushes = slots_.onDevice && slots_.flushes;
  if (shared_ == nullptr || deviceSlots() != nullptr) return {};
  ASSIGN(lane.slotRegistration,
         connections_[kSimple]->registerMemory(shared_->memory(), shared_->bytes(), plugin::PtrKind::Host));
  return {};
}

}  // namespace tutti::net
