#include "transport/shm/fd_fetch.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace tutti::shm {
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
  Fd line(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!line.valid()) return failed(fmt::format("a local socket failed: {}; {}", errnoText(errno), kDescriptors));
  const SocketName name = socketName(ticket_.server);
  if (::connect(line.get(), name.generic(), name.length) != 0) {
    if (errno == EAGAIN || errno == EINTR) return again();
    if (errno == ECONNREFUSED)
      return failed("nobody offers it any more: that rank has ended or given up, look at its output");
    return failed(fmt::format("connecting to its local socket failed: {}", errnoText(errno)));
  }
  if (!peerIsOurUser(line.get())) return failed("its local socket belongs to another user");
  FdRequest request;
  request.item = ticket_.item;
  if (::send(line.get(), &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(request)) return again();
  line_ = std::move(line);
  return FetchState::Pending;
}

FetchState FdFetch::receive() {
  FdReply reply{};
  iovec content{&reply, sizeof(reply)};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // of more than one descriptor the system would close the others
  const ssize_t got = ::recvmsg(line_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return again();
  if (got <= 0) {
    line_.reset();
    return again();
  }
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    fd_ = Fd(fd);
  }
  line_.reset();
  if (reply == FdReply::Granted && fd_.valid()) return FetchState::Done;
  fd_.reset();
  if (reply == FdReply::Granted) return failed(fmt::format("its descriptor did not arrive; {}", kDescriptors));
  return failed("it does not offer it any more: that rank has given the connection up, look at its output");
}

}  // namespace tutti::shm
