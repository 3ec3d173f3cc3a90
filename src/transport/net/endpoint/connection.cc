#include "transport/net/endpoint/connection.h"

#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "transport/net/lane/device_memory.h"
#include "transport/net/lane/user_registrations.h"

namespace tutti::net {

NetConnection::NetConnection(plugin::Net& net, NetPath path, int device)
    : net_(net), path_(std::move(path)), device_(device) {}

NetConnection::~NetConnection() {
  user_.reset();
  // Requests may be under way: the memory lives on until the connection is closed.
  for (void* registration : registrations_) net_.deregisterMemory(connection_, registration).ignore();
  if (connection_ != nullptr) {
    const bool sends = path_.direction == device::Direction::Send;
    (sends ? net_.closeSend(connection_) : net_.closeRecv(connection_)).ignore();
  }
  if (connection_ == nullptr && connecting_) net_.abandonConnect(handle_);
  closeListener().ignore();
}

Status NetConnection::listen() {
  auto listener = net_.listen(device_, handle_);
  if (!listener.ok()) return failNet(path_, listener.status(), "listen");
  listener_ = listener.value();
  return {};
}

Status NetConnection::closeListener() {
  if (listener_ == nullptr) return {};
  return net_.closeListen(std::exchange(listener_, nullptr));
}

Result<bool> NetConnection::poll() {
  if (connection_ != nullptr) return true;
  const bool sends = path_.direction == device::Direction::Send;
  auto connection = sends ? net_.connect(device_, handle_) : net_.accept(listener_);
  if (!connection.ok()) {
    connecting_ = false;
    return failNet(path_, connection.status(), sends ? "connect" : "accept");
  }
  connection_ = connection.value();
  connecting_ = sends && connection_ == nullptr;
  if (connection_ == nullptr) return false;
  if (const Status closed = closeListener(); !closed.ok()) return failNet(path_, closed, "closeListen");
  return true;
}

Result<void*> NetConnection::remembered(Result<void*> registration) {
  if (!registration.ok()) return failNet(path_, registration.status(), "registering memory");
  if (registration.value() != nullptr) registrations_.push_back(registration.value());
  return registration;
}

Result<void*> NetConnection::registerMemory(void* data, std::size_t bytes, plugin::PtrKind kind) {
  return remembered(net_.registerMemory(connection_, data, bytes, kind));
}

Result<void*> NetConnection::registerOnDevice(const gpu::DeviceBuffer& memory, const gpu::Device& device,
                                              const SlotPlace& place) {
  const std::string about = path_.text();
  Result<void*> made =
      registerDeviceMemory(net_, connection_, DeviceRange{device, memory.data(), memory.size(), about}, place);
  return made.ok() ? remembered(std::move(made)) : made;
}

UserRegistrations& NetConnection::sendRegistered(const std::shared_ptr<transport::RegisteredMemory>& memory,
                                                 const gpu::Device& device, const SlotPlace& slots) {
  if (user_ == nullptr) {
    gpu_ = &device;
    userPlace_ = slots;
    user_ = std::make_unique<UserRegistrations>(memory, static_cast<MemoryRegistrar&>(*this));
  }
  return *user_;
}

Result<void*> NetConnection::registerUser(void* data, std::size_t bytes) {
  if (!userPlace_.onDevice) return net_.registerMemory(connection_, data, bytes, plugin::PtrKind::Host);
  const std::string about = path_.text();
  return registerDeviceMemory(net_, connection_, DeviceRange{*gpu_, data, bytes, about}, userPlace_);
}

Result<SpareMemory::Kept> NetConnection::allocateKept(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  const std::shared_ptr<void> memory(std::aligned_alloc(kPage, whole), [](void* held) { std::free(held); });
  if (memory == nullptr) return fail(ncclSystemError, "{}: no {} bytes of host memory", path_.text(), whole);
  ASSIGN(void* const registration, registerMemory(memory.get(), whole, plugin::PtrKind::Host));
  keep(memory);
  return Kept{static_cast<std::byte*>(memory.get()), registration};
}

void NetConnection::deregister(void* registration) {
  if (registration == nullptr) return;  // as with other memory: there is nothing to be taken back
  net_.deregisterMemory(connection_, registration).ignore();
}

Result<bool> pollAll(std::span<const std::shared_ptr<NetConnection>> joins) {
  bool all = true;
  for (const auto& connection : joins) {
    if (connection == nullptr) continue;
    ASSIGN(const bool joined, connection->poll());
    all = all && joined;
  }
  return all;
}

}  // namespace tutti::net
