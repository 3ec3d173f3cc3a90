#include "transport/common/local_socket.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"

namespace tutti::transport {
namespace {

constexpr int kBacklog = 1024;
/// While there are no descriptors.
constexpr int kCrowdedMs = 20;
/// So many are let in, or turned away, before others have their turn.
constexpr int kBatch = 256;
/// After a batch with strangers.
constexpr milliseconds kRest{3};

/// Room for one descriptor beside a packet.
struct DescriptorRoom {
  alignas(cmsghdr) std::byte bytes[CMSG_SPACE(sizeof(int))]{};
};

msghdr messageOf(iovec& content) {
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  return message;
}

void attach(msghdr& message, DescriptorRoom& room, int fd) {
  message.msg_control = room.bytes;
  message.msg_controllen = sizeof(room.bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
}

Fd attachedTo(const msghdr& message) {
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return Fd(fd);
}

template <class Call>
ssize_t uninterrupted(Call&& call) {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

LocalName localName(std::string_view purpose, std::span<const std::byte, kNameKeyBytes> key) {
  constexpr std::size_t kMostPurpose = 32;
  std::string text = fmt::format("tutti-{}-", purpose.substr(0, kMostPurpose));
  for (const std::byte b : key) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  LocalName name;
  static_assert(sizeof("tutti--") + kMostPurpose + 2 * kNameKeyBytes <= sizeof(name.address.sun_path));
  name.address.sun_family = AF_UNIX;
  // The zero in front makes it abstract.
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

Fd localSocket() {
  return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool peerIsOurUser(int line) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

PacketIo sendPacket(int line, std::span<const std::byte> packet, int attached) {
  iovec content{const_cast<std::byte*>(packet.data()), packet.size()};
  msghdr message = messageOf(content);
  DescriptorRoom room;
  if (attached >= 0) attach(message, room, attached);
  const ssize_t sent = uninterrupted([&] { return ::sendmsg(line, &message, MSG_DONTWAIT | MSG_NOSIGNAL); });
  if (sent >= 0) return PacketIo::Done;
  // Descriptors under way are limited, too.
  return errno == EAGAIN || errno == ETOOMANYREFS ? PacketIo::Again : PacketIo::Gone;
}

ReceivedPacket receivePacket(int line, std::span<std::byte> into) {
  iovec content{into.data(), into.size()};
  msghdr message = messageOf(content);
  DescriptorRoom room;
  message.msg_control = room.bytes;
  const auto receive = [&] {
    message.msg_controllen = CMSG_LEN(sizeof(int));  // of more than one descriptor the system closes the others
    return uninterrupted([&] { return ::recvmsg(line, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC); });
  };
  ssize_t got = receive();
  // Linux looks at the queue first and at the other end's goodbye afterwards: of a packet that was sent, and the line
  // closed, between the two looks, it reports the end alone. The packet is there at the second call.
  if (got == 0) got = receive();
  if (got < 0 && errno == EAGAIN) return {PacketIo::Again, 0, {}};
  if (got <= 0) return {PacketIo::Gone, 0, {}};
  return {PacketIo::Done, static_cast<std::size_t>(got), attachedTo(message)};
}

Status LocalListener::open(const LocalName& name, std::string_view about, std::string_view remedy) {
  Fd socket = localSocket();
  if (!socket.valid()) {
    return fail(ncclSystemError, "{} : a local socket failed: {}. {}", about, errnoText(errno), remedy);
  }
  if (::bind(socket.get(), name.generic(), name.length) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    return fail(ncclSystemError, "{} : listening at a local socket failed: {}. {}", about, errnoText(errno), remedy);
  }
  close();
  socket_ = std::move(socket);
  return {};
}

void LocalListener::close() {
  *this = LocalListener();
}

Fd LocalListener::accept() {
  crowded_ = false;
  if (resting()) return {};
  while (socket_.valid() && batch_ < kBatch) {
    Fd line(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (line.valid()) {
      ++batch_;
      if (peerIsOurUser(line.get())) return line;
      strangers_ = true;
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    crowded_ = errno != EAGAIN;
    break;
  }
  endBatch();
  return {};
}

void LocalListener::endBatch() {
  rest_ = strangers_ ? Deadline::in(kRest) : Deadline::never();
  strangers_ = false;
  batch_ = 0;
}

int LocalListener::patience() const {
  if (crowded_) return kCrowdedMs;
  return rest_.isNever() ? -1 : static_cast<int>(rest_.remaining().count());
}

}  // namespace tutti::transport
