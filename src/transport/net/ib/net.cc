#include "transport/net/ib/net.h"

#include <cstring>

#include "base/log.h"
#include "transport/net/ib/connector.h"
#include "transport/net/ib/listener.h"
#include "transport/net/ib/nic/devices.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/receiver.h"
#include "transport/net/ib/sender.h"
#include "transport/net/tcp/connector.h"
#include "transport/net/tcp/listener.h"

namespace tutti::net::ib {

namespace {

// All ends are handed out as IbEnd*: what registers memory need not know which one it is.
IbSender* senderOf(void* connection) {
  return static_cast<IbSender*>(static_cast<IbEnd*>(connection));
}
IbReceiver* receiverOf(void* connection) {
  return static_cast<IbReceiver*>(static_cast<IbEnd*>(connection));
}
void* handedOut(IbEnd* end) {
  return end;
}

}  // namespace

IbNet::IbNet(std::shared_ptr<IbDevices> devices, IbOptions options, tcp::SocketDevice control,
             tcp::SocketOptions controlOptions, const plugin::NetOpening& opening)
    : devices_(std::move(devices)),
      options_(std::move(options)),
      control_(std::move(control)),
      controlOptions_(controlOptions),
      identity_{.commId = opening.commId, .secret = opening.secret} {}

IbNet::~IbNet() = default;

Result<int> IbNet::devices() {
  return devices_->count();
}

Result<std::vector<const IbPort*>> IbNet::portsOf(int device) const {
  std::vector<const IbPort*> ports = devices_->portsOf(device);
  if (!ports.empty()) return ports;
  return fail(ncclInvalidArgument, "NET/IB : There is no device {}: this host has {}", device, devices_->count());
}

Result<plugin::NetProperties> IbNet::properties(int device) {
  TRY(portsOf(device));
  return devices_->properties(device, reachesGpusByAddress());
}

bool IbNet::reachesGpusByAddress() const {
  return options_.gpuMemoryIsHost || !peerMemorySign("").empty();
}

Result<void*> IbNet::listen(int device, plugin::NetHandle& handle) {
  ASSIGN(auto ports, portsOf(device));
  ASSIGN(auto control, tcp::SocketListener::open(control_, controlOptions_, identity_));
  const int kinds = devices_->properties(device, reachesGpusByAddress()).ptrSupport;
  const bool reachesGpus = kinds != static_cast<int>(plugin::PtrKind::Host);
  auto listener = std::make_unique<IbListener>(std::move(ports), options_, std::move(control), controlOptions_.setup,
                                               reachesGpus && options_.flushes);
  const IbHandle said = listener->handle();
  std::memcpy(handle.data(), &said, sizeof(said));
  return static_cast<void*>(listener.release());
}

/// The state behind a handle, begun where it has none.
Result<IbConnector*> IbNet::connectorOf(int device, IbHandle& handle) {
  if (handle.socket.magic != tcp::kSocketMagic || !handle.socket.address.set() || handle.socket.streams != 0 ||
      handle.children == 0 || handle.children > kMostChildren) {
    return fail(ncclInternalError,
                "NET/IB : The peer's handle is none of this network: do all ranks use the same one?");
  }
  if (handle.socket.attempt == 0) {
    ASSIGN(auto ports, portsOf(device));
    auto dial = std::make_unique<tcp::SocketConnector>(control_, handle.socket, controlOptions_, identity_);
    auto connector =
        std::make_unique<IbConnector>(std::move(ports), handle, options_, std::move(dial), controlOptions_.setup);
    const std::lock_guard lock(mutex_);
    handle.socket.attempt = ++attempts_;
    return (connectors_[handle.socket.attempt] = std::move(connector)).get();
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = connectors_.find(handle.socket.attempt); found != connectors_.end())
    return found->second.get();
  return fail(ncclInvalidArgument, "NET/IB : The connect to {} has ended already", handle.socket.address.text());
}

std::unique_ptr<IbConnector> IbNet::takeConnector(std::uint64_t attempt) {
  const std::lock_guard lock(mutex_);
  auto node = connectors_.extract(attempt);
  return node.empty() ? nullptr : std::move(node.mapped());
}

Result<void*> IbNet::connect(int device, plugin::NetHandle& handle) {
  IbHandle state;
  std::memcpy(&state, handle.data(), sizeof(state));
  ASSIGN(IbConnector * connector, connectorOf(device, state));
  std::memcpy(handle.data(), &state, sizeof(state));
  auto sender = connector->advance();
  if (sender.ok() && sender.value() == nullptr) return nullptr;
  takeConnector(state.socket.attempt).reset();
  TRY(sender);
  return handedOut(std::move(sender).value().release());
}

void IbNet::abandonConnect(plugin::NetHandle& handle) {
  IbHandle state;
  std::memcpy(&state, handle.data(), sizeof(state));
  takeConnector(state.socket.attempt).reset();
}

Result<void*> IbNet::accept(void* listener) {
  ASSIGN(auto receiver, static_cast<IbListener*>(listener)->accept());
  return handedOut(receiver.release());
}

Status IbNet::closeListen(void* listener) {
  delete static_cast<IbListener*>(listener);
  return {};
}

Status IbNet::closeSend(void* connection) {
  delete senderOf(connection);
  return {};
}

Status IbNet::closeRecv(void* connection) {
  delete receiverOf(connection);
  return {};
}

Result<void*> IbNet::registerMemory(void* connection, void* data, std::size_t bytes, plugin::PtrKind kind) {
  static_cast<void>(kind);
  ASSIGN(IbRegistration * made, static_cast<IbEnd*>(connection)->registerMemory({.address = data, .bytes = bytes}));
  return static_cast<void*>(made);
}

Result<void*> IbNet::registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) {
  const MemoryRange range{.address = data, .bytes = bytes, .fd = fd, .offset = offset};
  ASSIGN(IbRegistration * made, static_cast<IbEnd*>(connection)->registerMemory(range));
  return static_cast<void*>(made);
}

Status IbNet::deregisterMemory(void* connection, void* registration) {
  return static_cast<IbEnd*>(connection)->deregister(static_cast<IbRegistration*>(registration));
}

Result<void*> IbNet::isend(void* connection, const plugin::NetBuffer& message) {
  ASSIGN(IbRequest * request, senderOf(connection)->isend(message));
  return static_cast<void*>(request);
}

Result<void*> IbNet::irecv(void* connection, std::span<const plugin::NetBuffer> messages) {
  ASSIGN(IbRequest * request, receiverOf(connection)->irecv(messages));
  return static_cast<void*>(request);
}

Result<void*> IbNet::iflush(void* connection, std::span<const plugin::NetBuffer> messages) {
  ASSIGN(IbRequest * request, receiverOf(connection)->iflush(messages));
  return static_cast<void*>(request);
}

Result<bool> IbNet::test(void* request, std::span<int> sizes) {
  auto* one = static_cast<IbRequest*>(request);
  return one->end->test(*one, sizes);
}

plugin::NetFusion IbNet::makeVirtual(std::span<const int> devices) {
  if (!options_.mergesNics) return {-1, "Skipping makeVDevice, NCCL_IB_MERGE_NICS=0"};
  return devices_->fuse(devices);
}

}  // namespace tutti::net::ib
