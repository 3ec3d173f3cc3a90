#include "transport/net/socket/socket_connector.h"

#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "transport/net/socket/socket_io.h"

namespace tutti {

namespace {

/// Errors that go away when the other side, or the way to it, comes up.
bool worthRetrying(int error) {
  switch (error) {
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNRESET:
    case ECONNABORTED:
      return true;
    default:
      return false;
  }
}

const char* remedyFor(int error) {
  switch (error) {
    case ECONNREFUSED:
      return ". Nobody listens there: did that process end, or does a firewall refuse?";
    case ETIMEDOUT:
      return ". The host does not answer: is it down, or does a firewall drop packets?";
    case EHOSTUNREACH:
    case ENETUNREACH:
      return ". There is no route: choose another interface with NCCL_SOCKET_IFNAME";
    case EMFILE:
    case ENFILE:
      return ". Too many open files: raise ulimit -n";
    case EADDRNOTAVAIL:
      return ". No free port";
    default:
      return "";
  }
}

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
      identity_(identity) {
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
  if (!worthRetrying(error) || dial.tries >= options_.retries) {
    return fail(isLocalTrouble(error) ? ncclSystemError : ncclRemoteError,
                "NET/Socket : Connecting to {} from {} failed: {}{}", peer_.text(), device_, errnoText(error),
                remedyFor(error));
  }
  if (++dial.tries == 1) {
    info(kNet, "NET/Socket : Connecting to {} from {}: {}, trying again", peer_.text(), device_, errnoText(error));
  }
  dial.step = Step::Pausing;
  dial.again = SteadyClock::now() + dial.tries * options_.retryStep;
  return {};
}

Status SocketConnector::begin(Dial& dial) {
  if (dial.tries > 0 && SteadyClock::now() < dial.again) return {};
  dial.socket = Fd(::socket(peer_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!dial.socket.valid()) return retry(dial, errno);
  tuneSocket(dial.socket.get(), options_);
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
  dial.step = Step::Greeting;
  dial.sent = 0;
  return greet(dial);
}

Status SocketConnector::greet(Dial& dial) {
  iovec part{reinterpret_cast<std::byte*>(&dial.hello) + dial.sent, sizeof(dial.hello) - dial.sent};
  const IoOutcome outcome = sendParts(dial.socket.get(), {&part, 1});
  if (outcome.kind == IoOutcome::Kind::WouldBlock) return {};
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
      break;
  }
  return {};
}

Result<bool> SocketConnector::heardAnswer() {
  iovec part{reinterpret_cast<std::byte*>(&answer_) + heard_, sizeof(answer_) - heard_};
  const IoOutcome outcome = receiveParts(dials_.front().socket.get(), {&part, 1});
  if (outcome.kind == IoOutcome::Kind::WouldBlock) return false;
  if (!outcome.done()) {
    return fail(
        ncclRemoteError,
        "NET/Socket : Peer {} closed the connection from {} before it stood: {}. It gave up, or what listens there "
        "now is of another communicator",
        peer_.text(), device_, outcome.error != 0 ? errnoText(outcome.error) : "end of stream");
  }
  heard_ += outcome.bytes;
  if (heard_ < sizeof(answer_)) return false;
  if (checkAnswer(identity_, listener_, connector_, answer_)) return true;
  return fail(ncclRemoteError, "NET/Socket : What answers at {} is not of this communicator", peer_.text());
}

Result<std::unique_ptr<SocketSender>> SocketConnector::finish() {
  SocketLink link{.device = device_, .peer = peer_, .options = options_};
  link.control = std::move(dials_.front().socket);
  for (std::size_t i = 1; i < dials_.size(); ++i) link.streams.push_back(std::move(dials_[i].socket));
  auto sender = std::make_unique<SocketSender>(std::move(link));
  TRY(sender->startHelpers());
  return sender;
}

Result<std::unique_ptr<SocketSender>> SocketConnector::advance() {
  bool ready = true;
  for (Dial& dial : dials_) {
    TRY(advance(dial));
    ready = ready && dial.step == Step::Ready;
  }
  if (!ready) return std::unique_ptr<SocketSender>();
  ASSIGN(const bool answered, heardAnswer());
  if (!answered) return std::unique_ptr<SocketSender>();
  return finish();
}

}  // namespace tutti
