#include "transport/net/tcp/connector.h"

#include <linux/tcp.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/socket/errors.h"
#include "transport/net/tcp/io.h"

namespace tutti::net::tcp {

namespace {

/// A link-local address means something only together with an interface of this host.
Address reachableFrom(const NetInterface& interface, Address peer) {
  if (peer.family() != AF_INET6 || !peer.isLinkLocal()) return peer;
  reinterpret_cast<sockaddr_in6*>(peer.raw())->sin6_scope_id = ::if_nametoindex(interface.name.c_str());
  return peer;
}

}  // namespace

SocketConnector::SocketConnector(const SocketDevice& device, const SocketHandle& handle, const SocketOptions& options,
                                 const SocketIdentity& identity)
    : device_(device.interface.name),
      peer_(reachableFrom(device.interface, handle.address)),
      listener_(handle.nonce),
      connector_(freshSocketNonce()),
      options_(options),
      identity_(identity),
      deadline_(Deadline::in(options.setup)) {
  options_.streams = static_cast<int>(handle.streams);
  options_.inlineBytes = handle.inlineBytes;
  options_.minPiece = handle.minPiece;
  dials_.resize(handle.streams + std::size_t{1});
  for (std::uint32_t i = 0; i < dials_.size(); ++i) {
    dials_[i].hello = makeHello(identity_, listener_, connector_, i, handle.streams);
  }
}

Status SocketConnector::retry(Dial& dial, int error) {
  dial.socket.reset();
  // Somebody has listened there.
  if (dial.turnedAway > 0 && error == ECONNREFUSED)
    return closedEarly({.kind = IoOutcome::Kind::Closed, .error = error});
  // A host that swallowed all packets has had half a minute by then.
  if (!mayComeUpYet(error) || error == ETIMEDOUT || dial.tries >= options_.retries) {
    return fail(isLocalTrouble(error) ? ncclSystemError : ncclRemoteError,
                "NET/Socket : Connecting to {} from {} failed: {}{}", peer_.text(), device_, errnoText(error),
                socketRemedy(error));
  }
  if (++dial.tries == 1) {
    info(kNet, "NET/Socket : Connecting to {} from {}: {}, trying again", peer_.text(), device_, errnoText(error));
  }
  dial.step = Step::Pausing;
  dial.again = SteadyClock::now() + dial.tries * options_.retryStep;
  return {};
}

Status SocketConnector::begin(Dial& dial) {
  if (SteadyClock::now() < dial.again) return {};
  dial.socket = Fd(::socket(peer_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!dial.socket.valid()) return retry(dial, errno);
  tuneSocket(dial.socket.get(), options_);
  dropPacing(dial.socket.get(), peer_);
  // A host that swallows packets is given up after about half a minute, not after two, and not tried again.
  constexpr int kSynRetries = 4;
  static_cast<void>(::setsockopt(dial.socket.get(), IPPROTO_TCP, TCP_SYNCNT, &kSynRetries, sizeof(kSynRetries)));
  dial.step = Step::Connecting;
  // One that was interrupted goes on in the background, as one in progress does.
  const int result = ::connect(dial.socket.get(), peer_.raw(), peer_.length());
  if (result != 0 && errno != EINPROGRESS && errno != EINTR) return retry(dial, errno);
  return checkConnected(dial);
}

Status SocketConnector::checkConnected(Dial& dial) {
  pollfd one{dial.socket.get(), POLLOUT, 0};
  if (::poll(&one, 1, 0) <= 0) return {};
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(dial.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return retry(dial, error);
  tuneConnected(dial.socket.get(), options_);
  dial.step = Step::Greeting;
  dial.sent = 0;
  return greet(dial);
}

Status SocketConnector::greet(Dial& dial) {
  iovec part{reinterpret_cast<std::byte*>(&dial.hello) + dial.sent, sizeof(dial.hello) - dial.sent};
  const IoOutcome outcome = sendParts(dial.socket.get(), {&part, 1});
  if (outcome.kind == IoOutcome::Kind::WouldBlock) return {};
  if (outcome.kind == IoOutcome::Kind::Closed) return lost(dial, outcome);
  if (!outcome.done()) return retry(dial, outcome.error);
  dial.sent += outcome.bytes;
  if (dial.sent == sizeof(dial.hello)) dial.step = Step::Ready;
  return {};
}

Status SocketConnector::advance(Dial& dial) {
  switch (dial.step) {
    case Step::Pausing:
      return begin(dial);
    case Step::Connecting:
      return checkConnected(dial);
    case Step::Greeting:
      return greet(dial);
    case Step::Ready:
      return checkStanding(dial);
  }
  return {};
}

/// The other sockets, or the peer, may keep us waiting; one that is lost meanwhile is never missed otherwise.
Status SocketConnector::checkStanding(Dial& dial) {
  const IoOutcome outcome = standsBy(dial.socket.get());
  return outcome.kind == IoOutcome::Kind::WouldBlock ? Status() : lost(dial, outcome);
}

/// A listener that has no place for a stranger resets it; one that gives the connection up, or is of another
/// communicator, closes in order. Where a process has ended, nobody listens at the next try.
Status SocketConnector::lost(Dial& dial, const IoOutcome& outcome) {
  if (!meansPeerGone(outcome.error)) return closedEarly(outcome);
  if (dial.turnedAway == 0)
    info(kNet, "NET/Socket : {} has no room for {} just now, trying again", peer_.text(), device_);
  constexpr milliseconds kShortest{4};
  constexpr int kDoublings = 6;
  dial.again = SteadyClock::now() + kShortest * (1 << std::min(dial.turnedAway++, kDoublings));
  dial.socket.reset();
  dial.step = Step::Pausing;
  return {};
}

Status SocketConnector::closedEarly(const IoOutcome& outcome) const {
  return fail(
      ncclRemoteError,
      "NET/Socket : Peer {} closed the connection from {} before it stood: {}. It gave up, or what listens there "
      "now is of another communicator",
      peer_.text(), device_, outcome.error != 0 ? errnoText(outcome.error) : "end of stream");
}

Status SocketConnector::overdue() const {
  const auto open =
      std::count_if(dials_.begin(), dials_.end(), [](const Dial& one) { return one.step == Step::Ready; });
  return fail(
      ncclRemoteError,
      "NET/Socket : Connecting to {} from {} came to no end within {} ms: {} of {} sockets are open, {}. Does a "
      "firewall drop some of them, or does that process hang? Fewer sockets: NCCL_SOCKET_NTHREADS, "
      "NCCL_NSOCKS_PERTHREAD",
      peer_.text(), device_, options_.setup.count(), open, dials_.size(),
      open == static_cast<std::ptrdiff_t>(dials_.size()) ? "and no answer came" : "the others do not connect");
}

Result<bool> SocketConnector::heardAnswer() {
  iovec part{reinterpret_cast<std::byte*>(&answer_) + heard_, sizeof(answer_) - heard_};
  const IoOutcome outcome = receiveParts(dials_.front().socket.get(), {&part, 1});
  if (outcome.kind == IoOutcome::Kind::WouldBlock) return false;
  if (!outcome.done() && heard_ == 0) {
    TRY(lost(dials_.front(), outcome));
    return false;
  }
  if (!outcome.done()) return closedEarly(outcome);
  heard_ += outcome.bytes;
  if (heard_ < sizeof(answer_)) return false;
  if (checkAnswer(identity_, listener_, connector_, answer_)) return true;
  return fail(ncclRemoteError, "NET/Socket : What answers at {} is not of this communicator", peer_.text());
}

SocketLink SocketConnector::finish() {
  SocketLink link{.device = device_, .peer = peer_, .options = options_};
  link.control = std::move(dials_.front().socket);
  for (std::size_t i = 1; i < dials_.size(); ++i) link.streams.push_back(std::move(dials_[i].socket));
  return link;
}

Result<std::optional<SocketLink>> SocketConnector::advance() {
  bool ready = true;
  for (Dial& dial : dials_) {
    TRY(advance(dial));
    ready = ready && dial.step == Step::Ready;
  }
  bool answered = false;
  if (ready) {
    ASSIGN(answered, heardAnswer());
  }
  if (answered) return std::optional(finish());
  if (deadline_.expired()) return overdue();
  return std::optional<SocketLink>();
}

}  // namespace tutti::net::tcp
