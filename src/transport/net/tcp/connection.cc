#include "transport/net/tcp/connection.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "base/socket/errors.h"
#include "transport/net/tcp/io.h"

namespace tutti::net::tcp {

SocketConnection::SocketConnection(SocketLink link, device::Direction direction)
    : control_(std::move(link.control)),
      silence_(link.options.silence),
      sizesBuffer_(direction == device::Direction::Send && sizesSendBuffer(control_.get(), link.options)),
      inlineBytes_(link.options.inlineBytes),
      direction_(direction),
      device_(std::move(link.device)),
      peer_(link.peer),
      threads_(link.options.threads),
      streams_(std::move(link.streams), direction, link.options.minPiece) {
  for (SocketRequest& request : requests_) request.connection = this;
}

SocketRequest* SocketConnection::post(const plugin::NetBuffer& message) {
  SocketRequest& request = at(posted_);
  if (request.busy) return nullptr;
  request.busy = true;
  request.data = static_cast<std::byte*>(message.data);
  request.bytes = message.bytes;
  request.header = {.bytes = static_cast<std::uint32_t>(message.bytes), .sequence = posted_};
  request.viaControl = message.bytes;
  request.moved = 0;
  request.headed = false;
  request.left.store(0, std::memory_order_relaxed);
  ++posted_;
  return &request;
}

Status SocketConnection::advance() {
  TRY(broken_);
  TRY(moveControl());
  if (const auto failure = streams_.advance()) return breakWith(*failure);
  return {};
}

Result<bool> SocketConnection::test(SocketRequest& request, std::span<int> sizes) {
  if (!request.done()) TRY(advance());
  if (!request.done()) return false;
  if (!sizes.empty()) sizes[0] = static_cast<int>(request.bytes);
  request.busy = false;
  return true;
}

std::string SocketConnection::place() const {
  Address local = Address::any(AF_INET6);
  socklen_t length = local.length();
  const bool known = ::getsockname(control_.get(), local.raw(), &length) == 0;
  return fmt::format("{} (from {} on {})", peer_.text(), known ? local.text() : "?", device_);
}

/// With data sockets the control socket may be ahead: then the oldest that is not done.
std::uint32_t SocketConnection::oldestUnderWay() {
  std::uint32_t number = posted_ < kSocketRequests ? 0 : posted_ - kSocketRequests;
  while (number != posted_ && (!at(number).busy || at(number).done())) ++number;
  return number;
}

std::string SocketConnection::whatIsUnderWay() {
  const char* verb = direction_ == device::Direction::Send ? "sending" : "receiving";
  const std::uint32_t number = oldestUnderWay();
  if (number == posted_) return fmt::format("{} message {}", verb, number);
  const SocketRequest& request = at(number);
  if (!streams_.none() && request.headed) {
    return fmt::format("{} message {} ({} bytes over {} more sockets)", verb, number, request.bytes,
                       request.left.load());
  }
  const std::size_t header = direction_ == device::Direction::Send ? sizeof(SocketHeader) : 0;
  const std::size_t moved = std::min(request.moved - std::min(request.moved, header), request.bytes);
  return fmt::format("{} message {} ({} of {} bytes)", verb, number, moved, request.bytes);
}

/// Whether a message that is waited for has not begun.
bool SocketConnection::betweenMessages() {
  if (direction_ == device::Direction::Send || hasBegunOne()) return false;
  const std::uint32_t number = oldestUnderWay();
  return number == posted_ || (!at(number).headed && at(number).moved == 0);
}

/// A process that ends between messages, without a word on its connections, may have said goodbye elsewhere. Who knows
/// tells what is written here, if it is no farewell; until then it is no more than the thread's last error.
Status SocketConnection::breakAsClosed(int error) {
  std::string said;
  {
    const auto quiet = betweenMessages() ? std::make_unique<ErrorsAsInfo>() : nullptr;
    broken_ = fail(
        ncclRemoteError,
        "NET/Socket : Connection closed by remote peer {} while {}: {}. That process ended or gave up: look at its "
        "log",
        place(), whatIsUnderWay(), error != 0 ? errnoText(error) : "end of stream");
    said = lastErrorText();
  }
  recallLastError(said);
  return broken_;
}

Status SocketConnection::breakWith(const IoOutcome& outcome) {
  if (outcome.kind == IoOutcome::Kind::Closed) return breakAsClosed(outcome.error);
  const char* call = direction_ == device::Direction::Send ? "send to" : "receive from";
  return broken_ = fail(isLocalTrouble(outcome.error) ? ncclSystemError : ncclRemoteError,
                        "NET/Socket : Call to {} {} failed while {}: {}", call, place(), whatIsUnderWay(),
                        errnoText(outcome.error));
}

Status SocketConnection::breakWith(TcpAckMonitor::Verdict verdict, const AckSample& sample) {
  if (verdict == TcpAckMonitor::Verdict::Swallowed) {
    return broken_ =
               fail(ncclRemoteError,
                    "NET/Socket : {} has acknowledged nothing of what was sent to it for {} ms, though short "
                    "packets come and go: something on the way swallows packets as long as ours (up to {} bytes of "
                    "content). Most likely a switch or interface on the way has a smaller MTU than {}: give all of "
                    "them the same, or this one the smallest",
                    place(), silence_.count(), sample.longest, device_);
  }
  return broken_ =
             fail(ncclRemoteError,
                  "NET/Socket : {} has acknowledged nothing of what was sent to it for {} ms, and answers nothing "
                  "else: is that host down, or a cable cut?",
                  place(), silence_.count());
}

}  // namespace tutti::net::tcp
