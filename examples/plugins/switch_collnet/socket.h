// TCP sockets that never wait, and frames (protocol.h) over them. What waits here says so and has a deadline.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol.h"

namespace switch_collnet {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using Bytes = std::vector<char>;

/// Owns a descriptor. Its end leaves errno as it was.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    const int before = errno;
    if (fd_ >= 0) ::close(fd_);
    errno = before;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// An address of IPv4, in network byte order; it travels in handles.
struct Address {
  std::uint32_t ip = 0;
  std::uint16_t port = 0;

  bool known() const { return port != 0; }
  std::string text() const {
    char ipText[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &ip, ipText, sizeof(ipText));
    return std::string(ipText) + ":" + std::to_string(ntohs(port));
  }
  sockaddr_in forSystem() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ip;
    address.sin_port = port;
    return address;
  }
  /// "10.0.0.1:5000"; without a port it is 0. Empty: that is none.
  static std::optional<Address> parse(const std::string& text) {
    const std::size_t colon = text.find(':');
    Address address;
    if (::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.ip) != 1) return {};
    if (colon == std::string::npos) return address;
    char* end = nullptr;
    const unsigned long port = std::strtoul(text.c_str() + colon + 1, &end, 10);
    if (*end != '\0' || end == text.c_str() + colon + 1 || port > 65535) return {};
    address.port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
};

/// A socket at an address, whose port becomes known if it was 0. Not valid: errno says why.
inline Fd listenAt(Address& at) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_in address = at.forSystem();
  socklen_t length = sizeof(address);
  if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(fd.get(), SOMAXCONN) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Fd();
  }
  at.port = address.sin_port;
  return fd;
}

/// Not valid: nobody has come (errno EAGAIN), or it went wrong.
inline Fd acceptFrom(const Fd& listener) {
  return Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

/// Begins to connect; see connectState(). Not valid: errno says why.
inline Fd connectTo(const Address& to) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in address = to.forSystem();
  if (!fd.valid()) return fd;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  return errno == EINPROGRESS ? std::move(fd) : Fd();
}

/// Waits until one of the events, or an error, is there, but not longer than `atMost`.
inline bool waitFor(const Fd& fd, short events, Milliseconds atMost) {
  pollfd one{fd.get(), events, 0};
  return ::poll(&one, 1, static_cast<int>(std::max<Milliseconds::rep>(atMost.count(), 0))) > 0;
}

/// 0: it is connected; EINPROGRESS: not yet; else why it will never be.
inline int connectState(const Fd& fd) {
  if (!waitFor(fd, POLLOUT, Milliseconds(0))) return EINPROGRESS;
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

/// Frames in both directions over one socket. It belongs to one thread at a time. An error ends it; error() says what
/// it was.
class Stream {
 public:
  Stream() = default;
  explicit Stream(Fd fd) : fd_(std::move(fd)) {
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // small operations are not held back
  }
  const Fd& fd() const { return fd_; }
  const std::string& error() const { return error_; }
  bool alive() const { return error_.empty(); }
  void fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }

  /// Posts a frame. The data stays the caller's, and must stay as it is until the frame has been sent.
  void send(Frame frame, const void* data, std::size_t bytes) {
    frame.payload = bytes;
    out_.push_back({frame, static_cast<const char*>(data), nullptr, 0, {}});
    ++posted_;
  }
  /// The same with data that several streams share. It does not leave before a point in time.
  void send(Frame frame, std::shared_ptr<const Bytes> data, Clock::time_point notBefore = {}) {
    frame.payload = data->size();
    const char* const begin = data->data();
    out_.push_back({frame, begin, std::move(data), 0, notBefore});
    ++posted_;
  }
  /// Frames posted, and frames that the system has taken whole.
  std::uint64_t posted() const { return posted_; }
  std::uint64_t sent() const { return sent_; }
  /// When the next frame may leave; empty: there is none.
  std::optional<Clock::time_point> nextDeparture() const {
    if (out_.empty()) return {};
    return out_.front().notBefore;
  }
  /// No more will be sent. Data on its way still arrives.
  void endSending() { ::shutdown(fd_.get(), SHUT_WR); }

  /// Sends what the socket takes now. A peer that takes nothing any more may still have said why: receive() tells.
  void flush() {
    while (!out_.empty() && !broken_ && alive() && out_.front().notBefore <= Clock::now()) {
      Outgoing& o = out_.front();
      if (!sendSome(o)) break;
      if (o.moved < sizeof(Frame) + o.frame.payload) continue;
      out_.pop_front();
      ++sent_;
    }
    if (broken_) out_.clear();
  }

  /// A frame that has come whole; empty: none has, by now. `placeOf(frame)` says where its payload belongs, before that
  /// is read; null refuses it.
  template <class PlaceOf>
  std::optional<Frame> receive(PlaceOf placeOf) {
    while (alive()) {
      const bool inHeader = got_ < sizeof(Frame);
      if (!inHeader && got_ == sizeof(Frame) + in_.payload) {
        got_ = 0;
        return in_;
      }
      char* const to = inHeader ? reinterpret_cast<char*>(&in_) + got_ : place_ + (got_ - sizeof(Frame));
      const std::size_t room = inHeader ? sizeof(Frame) - got_ : sizeof(Frame) + in_.payload - got_;
      const ssize_t bytes = ::recv(fd_.get(), to, room, 0);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
      if (bytes <= 0) {
        fail(bytes == 0 ? "the connection was closed by the other side" : std::strerror(errno));
        return {};
      }
      got_ += static_cast<std::size_t>(bytes);
      if (inHeader && got_ == sizeof(Frame)) acceptHeader(placeOf);
    }
    return {};
  }

 private:
  struct Outgoing {
    Frame frame;
    const char* data;
    std::shared_ptr<const Bytes> owner;
    std::size_t moved;  // of frame and data together
    Clock::time_point notBefore;
  };

  /// Whether something moved.
  bool sendSome(Outgoing& o) {
    iovec parts[2];
    std::size_t count = 0;
    if (o.moved < sizeof(Frame)) {
      parts[count++] = {reinterpret_cast<char*>(&o.frame) + o.moved, sizeof(Frame) - o.moved};
    }
    const std::size_t before = std::max(o.moved, sizeof(Frame)) - sizeof(Frame);
    if (o.frame.payload > before) parts[count++] = {const_cast<char*>(o.data) + before, o.frame.payload - before};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t bytes = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (bytes < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) broken_ = true;
    if (bytes > 0) o.moved += static_cast<std::size_t>(bytes);
    return bytes > 0;
  }
  template <class PlaceOf>
  void acceptHeader(PlaceOf& placeOf) {
    if (in_.magic != Frame::kMagic || in_.payload > kMostPayload) return fail("what came is no frame of ours");
    place_ = placeOf(in_);
    if (place_ == nullptr && in_.payload > 0 && alive()) fail("a frame came that nobody expects");
  }

  Fd fd_;
  std::deque<Outgoing> out_;
  std::uint64_t posted_ = 0;
  std::uint64_t sent_ = 0;
  bool broken_ = false;  // sending has failed: receive() says why
  Frame in_;
  char* place_ = nullptr;
  std::size_t got_ = 0;  // of in_ and its payload together
  std::string error_;
};

}  // namespace switch_collnet
