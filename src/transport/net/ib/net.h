// The built-in network over verbs: "IB", for InfiniBand and RoCE.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plugin/network/net.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/tcp/devices.h"
#include "transport/net/tcp/wire.h"

namespace tutti::net::ib {

class IbConnector;
class IbDevices;
struct IbHandle;
struct IbPort;

/// The use of verbs by one communicator. A connection is a control socket and its queue pairs. The receiver grants
/// where messages may be written, in rows of up to eight; the sender writes them there and announces them. Threads and
/// errors as with plugin::Net; what NICs write may be any memory that was registered.
///
/// An end that is closed in order says so: receives that the peer has posted beyond the last message then stay open
/// without an error. A peer that dies is ncclRemoteError at the next test().
class IbNet final : public plugin::Net {
 public:
  /// `control`: the interface over which ends meet.
  IbNet(std::shared_ptr<IbDevices> devices, IbOptions options, tcp::SocketDevice control,
        tcp::SocketOptions controlOptions, const plugin::NetOpening& opening);
  ~IbNet() override;

  std::string_view name() const override { return "IB"; }
  Result<int> devices() override;
  Result<plugin::NetProperties> properties(int device) override;

  Result<void*> listen(int device, plugin::NetHandle& handle) override;
  Result<void*> connect(int device, plugin::NetHandle& handle) override;
  void abandonConnect(plugin::NetHandle& handle) override;
  Result<void*> accept(void* listener) override;
  Status closeListen(void* listener) override;
  Status closeSend(void* connection) override;
  Status closeRecv(void* connection) override;

  Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, plugin::PtrKind kind) override;
  bool takesDmaBuf() const override { return true; }
  Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) override;
  Status deregisterMemory(void* connection, void* registration) override;

  Result<void*> isend(void* connection, const plugin::NetBuffer& message) override;
  Result<void*> irecv(void* connection, std::span<const plugin::NetBuffer> messages) override;
  Result<void*> iflush(void* connection, std::span<const plugin::NetBuffer> messages) override;
  Result<bool> test(void* request, std::span<int> sizes) override;

  bool fuses() const override { return options_.mergesNics; }
  int maxFused() const override { return static_cast<int>(kMostChildren); }
  plugin::NetFusion makeVirtual(std::span<const int> devices) override;

 private:
  Result<std::vector<const IbPort*>> portsOf(int device) const;
  bool reachesGpusByAddress() const;
  Result<IbConnector*> connectorOf(int device, IbHandle& handle);
  std::unique_ptr<IbConnector> takeConnector(std::uint64_t attempt);

  std::shared_ptr<IbDevices> devices_;
  IbOptions options_;
  tcp::SocketDevice control_;
  tcp::SocketOptions controlOptions_;
  tcp::SocketIdentity identity_;
  std::mutex mutex_;  ///< of the connectors' table; each is used by its own caller
  std::map<std::uint64_t, std::unique_ptr<IbConnector>> connectors_;
  std::uint64_t attempts_ = 0;
};

}  // namespace tutti::net::ib
