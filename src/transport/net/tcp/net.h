// The built-in network over TCP: "Socket".
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/settings/params.h"
#include "plugin/network/net.h"
#include "transport/net/tcp/connector.h"
#include "transport/net/tcp/devices.h"
#include "transport/net/tcp/epoll_set.h"
#include "transport/net/tcp/wire.h"

namespace tutti::net::tcp {

/// The use of TCP by one communicator. A connection is a control socket, and data sockets where the options say so;
/// messages travel in order. Peers prove with the communicator's secret that they belong to it; what they send is not
/// encrypted.
///
/// An end that is closed in order, nothing being under way, says so: receives that the peer has posted beyond the last
/// message then stay open without an error. An end that dies is ncclRemoteError at the peer's next test(); errors
/// stick. Helper threads touch the memory of unfinished messages until their end is closed, also after an error.
class SocketNet final : public plugin::Net {
 public:
  /// `settings` are borrowed and outlive the object.
  SocketNet(std::vector<SocketDevice> devices, const Params& settings, const plugin::NetOpening& opening);

  std::string_view name() const override { return "Socket"; }
  Result<int> devices() override { return static_cast<int>(devices_.size()); }
  Result<plugin::NetProperties> properties(int device) override;

  Result<void*> listen(int device, plugin::NetHandle& handle) override;
  Result<void*> connect(int device, plugin::NetHandle& handle) override;
  void abandonConnect(plugin::NetHandle& handle) override;
  Result<void*> accept(void* listener) override;
  Status closeListen(void* listener) override;
  Status closeSend(void* connection) override;
  Status closeRecv(void* connection) override;

  Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, plugin::PtrKind kind) override;
  bool takesDmaBuf() const override { return false; }
  Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) override;
  Status deregisterMemory(void* connection, void* registration) override;

  Result<void*> isend(void* connection, const plugin::NetBuffer& message) override;
  Result<void*> irecv(void* connection, std::span<const plugin::NetBuffer> messages) override;
  Result<void*> iflush(void* connection, std::span<const plugin::NetBuffer> messages) override;
  Result<bool> test(void* request, std::span<int> sizes) override;
  Result<bool> delivered(void* connection) override;

  bool fuses() const override { return false; }
  plugin::NetFusion makeVirtual(std::span<const int> devices) override;

  /// Sockets to sleep on instead of testing again and again; -1 where one would not do. Sender: POLLOUT, receiver:
  /// POLLIN.
  static int sendPollFd(void* connection);
  static int receivePollFd(void* connection);

 private:
  Result<const SocketDevice*> deviceAt(int device) const;
  Result<SocketConnector*> connectorOf(const SocketDevice& device, SocketHandle& handle);
  std::unique_ptr<SocketConnector> takeConnector(std::uint64_t attempt);

  std::vector<SocketDevice> devices_;
  const Params& settings_;
  SocketIdentity identity_;
  std::shared_ptr<EpollSet> arrivals_;  ///< may be null
  std::mutex mutex_;                    ///< of the connectors' table; each is used by its own caller
  std::map<std::uint64_t, std::unique_ptr<SocketConnector>> connectors_;
  std::uint64_t attempts_ = 0;
};

/// Opens the network for communicators; keeps nothing but settings. Any thread.
class SocketNetSource final : public plugin::NetSource {
 public:
  /// `sysfs`: where the system describes interfaces.
  explicit SocketNetSource(const Params& settings, std::string sysfs = "/sys/class/net");
  std::string_view name() const override { return "Socket"; }
  /// The devices are listed anew each time; a host without a fitting interface has none, and that is no error. All that
  /// was opened must be gone before this object is. Errors: ncclSystemError, ncclInvalidArgument.
  Result<std::unique_ptr<plugin::Net>> open(const plugin::NetOpening& opening) override;

 private:
  void announce(const std::vector<SocketDevice>& devices);

  Params settings_;
  std::string sysfs_;
  std::mutex mutex_;
  std::string announced_;  ///< the devices as last printed
};

}  // namespace tutti::net::tcp
