#include "transport/common/fd_fetch.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <utility>

#include "base/log.h"

namespace tutti::transport {

namespace {

constexpr const char* kDescriptors = "raise the descriptor limit (ulimit -n)";

}  // namespace

FetchState FdFetch::failed(std::string why) {
  line_.reset();
  why_ = std::move(why);
  return FetchState::Failed;
}

/// The next call knocks, or looks, again; at the end of the time there is none.
FetchState FdFetch::again() {
  if (!until_.expired()) return FetchState::Pending;
  return failed("it did not answer in time: that process hangs or is stopped");
}

FetchState FdFetch::advance() {
  if (state_ == FetchState::Pending) state_ = step();
  return state_;
}

FetchState FdFetch::step() {
  if (!line_.valid()) {
    if (const FetchState knocked = knock(); knocked != FetchState::Pending || !line_.valid()) return knocked;
  }
  return receive();
}

FetchState FdFetch::knock() {
  Fd line = localSocket();
  if (!line.valid()) return failed(fmt::format("a local socket failed: {}; {}", errnoText(errno), kDescriptors));
  const LocalName name = socketName(ticket_.server);
  if (::connect(line.get(), name.generic(), name.length) != 0) {
    if (errno == EAGAIN || errno == EINTR) return again();
    if (errno == ECONNREFUSED)
      return failed("nobody offers it any more: that rank has ended or given up, look at its output");
    return failed(fmt::format("connecting to its local socket failed: {}", errnoText(errno)));
  }
  if (!peerIsOurUser(line.get())) return failed("its local socket belongs to another user");
  FdRequest request;
  request.item = ticket_.item;
  if (sendPacket(line.get(), packetOf(request)) != PacketIo::Done) return again();
  line_ = std::move(line);
  return FetchState::Pending;
}

FetchState FdFetch::receive() {
  FdReply reply{};
  ReceivedPacket packet = receivePacket(line_.get(), std::as_writable_bytes(std::span(&reply, 1)));
  if (packet.state == PacketIo::Again) return again();
  line_.reset();
  if (packet.state == PacketIo::Gone) return again();
  if (reply == FdReply::Granted && packet.attached.valid()) {
    fd_ = std::move(packet.attached);
    return FetchState::Done;
  }
  if (reply == FdReply::Granted) return failed(fmt::format("its descriptor did not arrive; {}", kDescriptors));
  return failed("it does not offer it any more: that rank has given the connection up, look at its output");
}

}  // namespace tutti::transport
