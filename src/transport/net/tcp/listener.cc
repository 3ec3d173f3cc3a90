#include "transport/net/tcp/listener.h"

#include <linux/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/socket/errors.h"
#include "transport/net/tcp/io.h"

namespace tutti::net::tcp {

namespace {

/// So many are met at a time.
constexpr int kBatch = 128;
/// Where the process has no descriptors for them.
constexpr milliseconds kStarvedRest{50};
/// So long they are waited for, or half of the time that a connection may take: peers still wait then, and hear why.
constexpr milliseconds kStarvedLimit{3000};

/// The other side sees a reset, not an end in order.
void reset(Fd socket) {
  const linger how{1, 0};
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &how, sizeof(how)));
}

}  // namespace

SocketListener::SocketListener(Listener listener, const SocketDevice& device, const SocketOptions& options,
                               const SocketIdentity& identity)
    : listener_(std::move(listener)),
      device_(device.interface.name),
      options_(options),
      identity_(identity),
      nonce_(freshSocketNonce()),
      admitted_(static_cast<std::size_t>(options.streams) + 1),
      missing_(admitted_.size()) {}

Result<std::unique_ptr<SocketListener>> SocketListener::open(const SocketDevice& device, const SocketOptions& options,
                                                             const SocketIdentity& identity) {
  ASSIGN(Listener listener, Listener::listen(device.interface.address));
  // What the listening socket has, those that it accepts inherit.
  tuneSocket(listener.fd(), options);
  // A peer is not met before its hello. A system without this option is slower in a crowd, no more.
  const int seconds = 1;
  static_cast<void>(::setsockopt(listener.fd(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds)));
  return std::unique_ptr<SocketListener>(new SocketListener(std::move(listener), device, options, identity));
}

SocketHandle SocketListener::handle() const {
  return {.magic = kSocketMagic,
          .nonce = nonce_,
          .address = listener_.address(),
          .inlineBytes = options_.inlineBytes,
          .minPiece = options_.minPiece,
          .streams = static_cast<std::uint32_t>(options_.streams)};
}

Status SocketListener::onStarved(int error) {
  if (starvedUntil_.isNever()) {
    warn("NET/Socket : Cannot accept connections on {} ({}): {}{}. Who waits is accepted when that is over",
         listener_.address().text(), device_, errnoText(error), socketRemedy(error));
    starvedUntil_ = Deadline::in(std::min(kStarvedLimit, options_.setup / 2));
  }
  if (starvedUntil_.expired()) return cannotAccept(error);
  rest_ = Deadline::in(kStarvedRest);
  return {};
}

Status SocketListener::cannotAccept(int error) const {
  return fail(ncclSystemError, "NET/Socket : Accepting on {} ({}) failed: {}{}", listener_.address().text(), device_,
              errnoText(error), socketRemedy(error));
}

Status SocketListener::takeNew() {
  if (!rest_.expired()) return {};
  for (int taken = 0; taken < kBatch;) {
    Address peer = Address::any(AF_INET6);
    socklen_t length = peer.length();
    Fd socket(::accept4(listener_.fd(), peer.raw(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      ++taken;
      starvedUntil_ = Deadline::never();
      meet({.socket = std::move(socket), .address = peer});
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return onStarved(errno);
    }
    return cannotAccept(errno);
  }
  return {};
}

void SocketListener::meet(Unauthenticated stranger) {
  if (!hear(stranger)) return;
  stranger.place = UnprovenPlaces::ofProcess().take(stranger.address);
  if (stranger.place.taken()) return unauthenticated_.push_back(std::move(stranger));
  reset(std::move(stranger.socket));
}

/// Takes in one that said a right hello. Its socket stays with the stranger, to be dropped, if the hello is wrong.
bool SocketListener::admit(Unauthenticated& stranger) {
  SocketHello hello;
  std::memcpy(&hello, stranger.hello.data(), sizeof(hello));
  const bool first = missing_ == admitted_.size();
  const bool right = checkHello(identity_, nonce_, hello) && hello.streams + 1 == admitted_.size() &&
                     hello.stream < admitted_.size() && (first || hello.nonce == connector_) &&
                     !admitted_[hello.stream].valid();
  if (!right) {
    info(kNet, "NET/Socket : {} on {} does not belong to this communicator: dropped", stranger.address.text(), device_);
    return false;
  }
  if (first) deadline_ = Deadline::in(options_.setup);
  connector_ = hello.nonce;
  if (first || hello.stream == 0) peer_ = stranger.address;
  tuneSocket(stranger.socket.get(), options_);
  admitted_[hello.stream] = std::move(stranger.socket);
  --missing_;
  return true;
}

/// Reads on. Whether the stranger may stay one.
bool SocketListener::hear(Unauthenticated& stranger) {
  iovec part{stranger.hello.data() + stranger.read, stranger.hello.size() - stranger.read};
  const IoOutcome outcome = receiveParts(stranger.socket.get(), {&part, 1});
  if (outcome.kind == IoOutcome::Kind::WouldBlock) return !stranger.deadline.expired();
  if (!outcome.done()) return false;
  stranger.read += outcome.bytes;
  // Who begins in another way need not be heard to the end.
  const std::size_t known = std::min(stranger.read, sizeof(kSocketMagic));
  if (std::memcmp(stranger.hello.data(), &kSocketMagic, known) != 0) return false;
  if (stranger.read < stranger.hello.size()) return true;
  admit(stranger);
  return false;
}

void SocketListener::hearStrangers() {
  std::erase_if(unauthenticated_, [this](Unauthenticated& one) { return !hear(one); });
}

Result<std::optional<SocketLink>> SocketListener::finish() {
  SocketLink link{.device = device_, .peer = peer_, .options = options_};
  link.control = std::move(admitted_.front());
  for (std::size_t i = 1; i < admitted_.size(); ++i) link.streams.push_back(std::move(admitted_[i]));
  unauthenticated_.clear();
  admitted_.clear();
  SocketAnswer answer = makeAnswer(identity_, nonce_, connector_);
  iovec part{&answer, sizeof(answer)};
  const IoOutcome outcome = sendParts(link.control.get(), {&part, 1});
  // Nothing was sent on it before, so there is room.
  if (outcome.bytes != sizeof(answer)) {
    return fail(ncclRemoteError, "NET/Socket : Peer {} on {} is gone before the connection stood: {}", peer_.text(),
                device_, errnoText(outcome.error));
  }
  return std::optional(std::move(link));
}

/// The peer counts on all its sockets: it does not dial again for one that was admitted.
Status SocketListener::checkAdmitted() const {
  for (const Fd& socket : admitted_) {
    if (!socket.valid()) continue;
    const IoOutcome outcome = standsBy(socket.get());
    if (outcome.kind == IoOutcome::Kind::WouldBlock) continue;
    return fail(
        ncclRemoteError,
        "NET/Socket : Peer {} on {} closed a socket before the connection stood: {}. That process ended or gave "
        "up: look at its log",
        peer_.text(), device_, outcome.error != 0 ? errnoText(outcome.error) : "end of stream");
  }
  return {};
}

Status SocketListener::overdue() const {
  const std::size_t here = admitted_.size() - missing_;
  return fail(
      ncclRemoteError,
      "NET/Socket : {} of {} sockets of {} have come to {} ({}) within {} ms. Does a firewall drop some of them, or "
      "does that process hang? Fewer sockets: NCCL_SOCKET_NTHREADS, NCCL_NSOCKS_PERTHREAD{}",
      here, admitted_.size(), here > 0 ? peer_.text() : "the peer", listener_.address().text(), device_,
      options_.setup.count(), !starvedUntil_.isNever() ? ". This process had none left for them" : "");
}

Result<std::optional<SocketLink>> SocketListener::accept() {
  if (admitted_.empty()) return std::optional<SocketLink>();
  if (deadline_.isNever()) deadline_ = Deadline::in(options_.setup);
  TRY(takeNew());
  hearStrangers();
  if (missing_ == 0) return finish();
  TRY(checkAdmitted());
  if (deadline_.expired()) return overdue();
  return std::optional<SocketLink>();
}

}  // namespace tutti::net::tcp
