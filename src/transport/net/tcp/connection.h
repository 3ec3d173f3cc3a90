// What both ends of a connection of the built-in network have in common: its requests, its sockets, its error.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/socket/address.h"
#include "plugin/network/net.h"
#include "transport/net/tcp/ack_monitor.h"
#include "transport/net/tcp/link.h"
#include "transport/net/tcp/options.h"
#include "transport/net/tcp/streams.h"
#include "transport/net/tcp/wire.h"

namespace tutti::net::tcp {

class SocketConnection;

/// One message under way.
struct SocketRequest {
  SocketConnection* connection = nullptr;
  bool busy = false;  ///< belongs to the caller, who has not heard yet that it is done
  std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< of the message; until a receive knows that: how much fits
  SocketHeader header;
  std::size_t viaControl = 0;          ///< bytes behind the header on the control socket
  std::size_t moved = 0;               ///< of those, what has come; at the sender what has gone, header and padding too
  bool headed = false;                 ///< all that the control socket has to carry has moved
  std::atomic<std::uint32_t> left{0};  ///< pieces on data sockets
  bool done() const { return headed && left.load(std::memory_order_acquire) == 0; }
};

/// One end. isend/irecv and test from one thread at a time.
class SocketConnection {
 public:
  SocketConnection(SocketLink link, device::Direction direction);
  virtual ~SocketConnection() = default;

  Status startHelpers() { return streams_.startHelpers(threads_); }

  /// Whether the request, one of this connection's, is done; moves what goes without waiting if it is not.
  Result<bool> test(SocketRequest& request, std::span<int> sizes);

  /// The one socket on which this end waits, to sleep on with poll(): POLLOUT at the sender, POLLIN at the receiver.
  /// -1: there are several.
  int pollFd() const { return streams_.none() ? control_.get() : -1; }

 protected:
  /// The next request in order, or null while all are taken.
  SocketRequest* post(const plugin::NetBuffer& message);
  SocketRequest& at(std::uint32_t number) { return requests_[number % kSocketRequests]; }
  /// Does what can be done on the control socket.
  virtual Status moveControl() = 0;
  /// Whether a message has begun to come of whose content nothing need be here yet.
  virtual bool hasBegunOne() const { return false; }
  /// "sending message 17 (4096 of 8192 bytes)"
  std::string whatIsUnderWay();
  /// Moves what goes without waiting.
  Status advance();
  /// Remembers and returns the error that ends the connection.
  Status breakAsClosed(int error);
  std::uint32_t oldestUnderWay();
  bool betweenMessages();
  Status breakWith(const IoOutcome& outcome);
  Status breakWith(Status error) { return broken_ = error; }
  /// "10.0.0.2<4242> (from 10.0.0.1<3333> on eth0)"
  std::string place() const;

  /// The same for what has become of the bytes that were sent.
  Status breakWith(TcpAckMonitor::Verdict verdict, const AckSample& sample);

  Fd control_;
  milliseconds silence_;       ///< SocketOptions::silence
  bool sizesBuffer_;           ///< sizesSendBuffer() of the control socket
  std::size_t inlineBytes_;    ///< longer messages go over the data sockets, if there are any
  std::uint32_t posted_ = 0;   ///< requests so far
  std::uint32_t current_ = 0;  ///< the oldest that the control socket is not done with
  Status broken_;

 private:
  device::Direction direction_;
  std::string device_;
  Address peer_;
  int threads_;
  std::array<SocketRequest, kSocketRequests> requests_;

 protected:
  SocketStreams streams_;  ///< last: its threads, which work for the requests, end first
};

}  // namespace tutti::net::tcp
