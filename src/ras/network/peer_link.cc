#include "ras/network/peer_link.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/log.h"

namespace tutti::ras {

namespace {

using bootstrap::ClientHandshake;
using bootstrap::Link;

/// Ranks as handshakes have them; processes are told apart by their keys.
constexpr int kNoRank = 0;

/// The socket is not valid where the system refuses at once: errno.
Socket beginConnect(const Address& to) {
  Fd fd(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return {};
  const int on = 1;
  static_cast<void>(::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
  if (::connect(fd.get(), to.raw(), to.length()) != 0 && errno != EINPROGRESS && errno != EINTR) return {};
  return Socket(std::move(fd), to);
}

/// EINPROGRESS while it is not decided.
int connectError(const Socket& socket) {
  pollfd ready{socket.fd(), POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  // A client may be given the very port that nobody listens at, and is then connected with itself.
  if (error == 0 && socket.local() == socket.peer()) error = ECONNREFUSED;
  return error;
}

bool nobodyThere(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH;
}

/// `open`: both sides had proved who they are.
std::string textOf(const Link::End& end, bool open) {
  switch (end.kind) {
    case Link::End::Kind::Closed:
      return "closed by peer";
    case Link::End::Kind::Broken:
      return errnoText(end.error);
    case Link::End::Kind::Refused:
      if (open) return "sent what makes no sense";
      return end.verdict == bootstrap::Verdict::OtherVersion ? "another version of the library" : "not of this job";
  }
  return "";
}

}  // namespace

PeerLink::PeerLink(const Address& to, const bootstrap::Key& key) : peer_(to), key_(key), connecting_(beginConnect(to)) {
  if (!connecting_.valid()) end(errnoText(errno), nobodyThere(errno));
}

PeerLink::PeerLink(bootstrap::Arrival arrival, const bootstrap::Key& key)
    : peer_(arrival.link->peer()), key_(key), link_(std::move(arrival.link)), place_(std::move(arrival.place)) {}

int PeerLink::fd() const {
  if (ended_) return -1;
  return link_ ? link_->fd() : connecting_.fd();
}

void PeerLink::end(std::string why, bool refused) {
  ended_ = true;
  why_ = std::move(why);
  refused_ = refused;
  link_.reset();
  connecting_.close();
  early_.clear();
}

void PeerLink::connected() {
  const ClientHandshake client(key_, bootstrap::Purpose::Ras, kNoRank, kNoRank);
  link_ = std::make_unique<Link>(std::move(connecting_), client, kMaxMessage);
  for (auto& [message, payload] : std::exchange(early_, {})) send(message, std::move(payload));
}

void PeerLink::advance() {
  if (ended_) return;
  if (!link_) {
    const int error = connectError(connecting_);
    if (error == EINPROGRESS) return;
    if (error != 0) return end(errnoText(error), nobodyThere(error));
    connected();
  }
  link_->flush();
  link_->receive(frames_);
  if (place_.taken() && link_->passed()) place_.giveBack();
  if (link_->end()) return end(textOf(*link_->end(), link_->open()));
  link_->flush();
}

void PeerLink::send(Message message, Bytes payload) {
  if (ended_) return;
  if (!link_) {
    early_.emplace_back(message, std::move(payload));
    return;
  }
  link_->send(bootstrap::FrameType::Ras, 0, std::make_shared<const bootstrap::Bytes>(std::move(payload)),
              static_cast<std::uint8_t>(message));
  link_->flush();
}

void PeerLink::finish() {
  if (open()) static_cast<void>(::shutdown(link_->fd(), SHUT_WR));
}

void PeerLink::close(std::string why) {
  if (!ended_) end(std::move(why));
}

}  // namespace tutti::ras
