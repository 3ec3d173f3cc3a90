#include "transport/net/tcp/net.h"

#include <cstring>

#include "base/log.h"
#include "transport/net/tcp/listener.h"
#include "transport/net/tcp/receiver.h"
#include "transport/net/tcp/sender.h"

namespace tutti::net::tcp {

namespace {

// Connections are handed out as void*: a sender and a receiver are never mixed up by those who follow
// plugin/network/net.h.
SocketSender* senderOf(void* connection) {
  return static_cast<SocketSender*>(connection);
}
SocketReceiver* receiverOf(void* connection) {
  return static_cast<SocketReceiver*>(connection);
}

}  // namespace

SocketNet::SocketNet(std::vector<SocketDevice> devices, const Params& settings, const plugin::NetOpening& opening)
    : devices_(std::move(devices)),
      settings_(settings),
      identity_{.commId = opening.commId, .secret = opening.secret},
      arrivals_(EpollSet::create()) {}

Result<const SocketDevice*> SocketNet::deviceAt(int device) const {
  const auto index = static_cast<std::size_t>(device);
  if (device >= 0 && index < devices_.size()) return &devices_[index];
  return fail(ncclInvalidArgument, "NET/Socket : There is no device {}: this host has {}", device, devices_.size());
}

Result<plugin::NetProperties> SocketNet::properties(int device) {
  ASSIGN(const SocketDevice* one, deviceAt(device));
  return socketProperties(*one, device);
}

Result<void*> SocketNet::listen(int device, plugin::NetHandle& handle) {
  ASSIGN(const SocketDevice* one, deviceAt(device));
  ASSIGN(auto listener, SocketListener::open(*one, socketOptions(settings_, one->vendor), identity_));
  const SocketHandle said = listener->handle();
  std::memcpy(handle.data(), &said, sizeof(said));
  return static_cast<void*>(listener.release());
}

/// The state behind a handle, begun where it has none.
Result<SocketConnector*> SocketNet::connectorOf(const SocketDevice& device, SocketHandle& handle) {
  if (handle.magic != kSocketMagic || !handle.address.set() ||
      handle.streams > static_cast<std::uint32_t>(kMaxSocketStreams)) {
    return fail(ncclInternalError,
                "NET/Socket : The peer's handle is none of this network: do all ranks use the same one?");
  }
  if (handle.attempt == 0) {
    auto connector =
        std::make_unique<SocketConnector>(device, handle, socketOptions(settings_, device.vendor), identity_);
    const std::lock_guard lock(mutex_);
    handle.attempt = ++attempts_;
    return (connectors_[handle.attempt] = std::move(connector)).get();
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = connectors_.find(handle.attempt); found != connectors_.end()) return found->second.get();
  return fail(ncclInvalidArgument, "NET/Socket : The connect to {} has ended already", handle.address.text());
}

std::unique_ptr<SocketConnector> SocketNet::takeConnector(std::uint64_t attempt) {
  const std::lock_guard lock(mutex_);
  auto node = connectors_.extract(attempt);
  return node.empty() ? nullptr : std::move(node.mapped());
}

Result<void*> SocketNet::connect(int device, plugin::NetHandle& handle) {
  ASSIGN(const SocketDevice* one, deviceAt(device));
  SocketHandle state;
  std::memcpy(&state, handle.data(), sizeof(state));
  ASSIGN(SocketConnector * connector, connectorOf(*one, state));
  std::memcpy(handle.data(), &state, sizeof(state));
  auto link = connector->advance();
  if (link.ok() && !link.value()) return nullptr;
  takeConnector(state.attempt).reset();
  TRY(link);
  auto sender = std::make_unique<SocketSender>(*std::move(link).value());
  TRY(sender->startHelpers());
  return static_cast<void*>(sender.release());
}

void SocketNet::abandonConnect(plugin::NetHandle& handle) {
  SocketHandle state;
  std::memcpy(&state, handle.data(), sizeof(state));
  takeConnector(state.attempt).reset();
}

Result<void*> SocketNet::accept(void* listener) {
  ASSIGN(auto link, static_cast<SocketListener*>(listener)->accept());
  if (!link) return nullptr;
  auto receiver = std::make_unique<SocketReceiver>(*std::move(link));
  TRY(receiver->startHelpers());
  receiver->heed(arrivals_);
  return static_cast<void*>(receiver.release());
}

Status SocketNet::closeListen(void* listener) {
  delete static_cast<SocketListener*>(listener);
  return {};
}

Status SocketNet::closeSend(void* connection) {
  delete senderOf(connection);
  return {};
}

Status SocketNet::closeRecv(void* connection) {
  delete receiverOf(connection);
  return {};
}

Result<void*> SocketNet::registerMemory(void* connection, void* data, std::size_t bytes, plugin::PtrKind kind) {
  (void)connection, (void)data;
  if (kind == plugin::PtrKind::Host) return nullptr;
  return fail(ncclInvalidUsage, "NET/Socket : {} bytes of memory that is not the host's cannot be registered", bytes);
}

Result<void*> SocketNet::registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) {
  (void)connection, (void)data, (void)offset, (void)fd;
  return fail(ncclInvalidUsage, "NET/Socket : {} bytes of a dma-buf cannot be registered", bytes);
}

Status SocketNet::deregisterMemory(void* connection, void* registration) {
  (void)connection, (void)registration;
  return {};
}

Result<void*> SocketNet::isend(void* connection, const plugin::NetBuffer& message) {
  ASSIGN(SocketRequest * request, senderOf(connection)->isend(message));
  return static_cast<void*>(request);
}

Result<void*> SocketNet::irecv(void* connection, std::span<const plugin::NetBuffer> messages) {
  if (messages.size() != 1) {
    return fail(ncclInvalidArgument, "NET/Socket : A receive is of one message, not of {}", messages.size());
  }
  ASSIGN(SocketRequest * request, receiverOf(connection)->irecv(messages.front()));
  return static_cast<void*>(request);
}

Result<void*> SocketNet::iflush(void* connection, std::span<const plugin::NetBuffer> messages) {
  (void)connection, (void)messages;
  return nullptr;
}

Result<bool> SocketNet::test(void* request, std::span<int> sizes) {
  auto* one = static_cast<SocketRequest*>(request);
  return one->connection->test(*one, sizes);
}

Result<bool> SocketNet::delivered(void* connection) {
  return senderOf(connection)->delivered();
}

plugin::NetFusion SocketNet::makeVirtual(std::span<const int>) {
  return {-1, "NET/Socket fuses no devices: use several sockets instead"};
}

int SocketNet::sendPollFd(void* connection) {
  return senderOf(connection)->pollFd();
}

int SocketNet::receivePollFd(void* connection) {
  return receiverOf(connection)->pollFd();
}

SocketNetSource::SocketNetSource(const Params& settings, std::string sysfs)
    : settings_(settings), sysfs_(std::move(sysfs)) {}

void SocketNetSource::announce(const std::vector<SocketDevice>& devices) {
  const std::string text = devices.empty() ? "none" : socketDevicesText(devices);
  const std::lock_guard lock(mutex_);
  if (text == announced_) return;
  announced_ = text;
  if (devices.empty()) {
    info(kInit | kNet, "NET/Socket : No interface found.");
  } else {
    info(kInit | kNet, "NET/Socket : Using {}", text);
  }
  for (const SocketDevice& device : devices) {
    bool reduced = false;
    const SocketOptions options = socketOptions(settings_, device.vendor, &reduced);
    if (!reduced) continue;
    warn("NET/Socket : NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD is more than {}: {} sockets are used",
         kMaxSocketStreams, options.streams);
    return;
  }
}

Result<std::unique_ptr<plugin::Net>> SocketNetSource::open(const plugin::NetOpening& opening) {
  TRY(initSocketProofs());
  ASSIGN(auto devices, listSocketDevices(settings_, sysfs_));
  announce(devices);
  return std::unique_ptr<plugin::Net>(std::make_unique<SocketNet>(std::move(devices), settings_, opening));
}

}  // namespace tutti::net::tcp
