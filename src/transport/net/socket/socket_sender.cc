#include "transport/net/socket/socket_sender.h"

#include <algorithm>
#include <climits>

#include "base/log.h"
#include "transport/net/socket/socket_io.h"

namespace tutti {

namespace {

/// Parts of one call: headers and contents of eight messages.
constexpr std::size_t kParts = 16;

}  // namespace

SocketSender::~SocketSender() {
  if (!broken_.ok() || current_ != posted_) return;
  SocketHeader bye{.bytes = kSocketBye, .sequence = posted_};
  iovec part{&bye, sizeof(bye)};
  // Where it cannot be sent the peer sees an end without it, and says so.
  static_cast<void>(sendParts(control_.get(), {&part, 1}));
}

Result<SocketRequest*> SocketSender::isend(const NetBuffer& message) {
  TRY(broken_);
  if (message.bytes > INT_MAX) {
    return fail(ncclInvalidArgument, "NET/Socket : A message to {} of {} bytes is too long: at most {}", place(),
                message.bytes, INT_MAX);
  }
  SocketRequest* request = post(message);
  if (request == nullptr) return nullptr;
  if (!streams_.none() && message.bytes > inlineBytes_) {
    request->viaControl = 0;
    streams_.add(request->data, request->bytes, request->left);
  }
  TRY(advance());
  return request;
}

/// What the control socket has to carry next. Returns the bytes.
std::size_t SocketSender::gather(std::span<iovec> parts, std::size_t& count) {
  std::size_t bytes = 0;
  for (std::uint32_t number = current_; number != posted_ && count + 2 <= parts.size(); ++number) {
    SocketRequest& request = at(number);
    const std::size_t ofHeader = std::min(request.moved, sizeof(SocketHeader));
    const std::size_t ofContent = request.moved - ofHeader;
    if (ofHeader < sizeof(SocketHeader)) {
      auto* header = reinterpret_cast<std::byte*>(&request.header);
      parts[count++] = {header + ofHeader, sizeof(SocketHeader) - ofHeader};
    }
    if (ofContent < request.viaControl) parts[count++] = {request.data + ofContent, request.viaControl - ofContent};
    bytes += sizeof(SocketHeader) + request.viaControl - request.moved;
  }
  return bytes;
}

void SocketSender::account(std::size_t moved) {
  while (current_ != posted_) {
    SocketRequest& request = at(current_);
    const std::size_t step = std::min(moved, sizeof(SocketHeader) + request.viaControl - request.moved);
    request.moved += step;
    moved -= step;
    if (request.moved < sizeof(SocketHeader) + request.viaControl) return;
    request.headed = true;
    ++current_;
  }
}

Status SocketSender::moveControl() {
  while (current_ != posted_) {
    std::array<iovec, kParts> parts;
    std::size_t count = 0;
    const std::size_t bytes = gather(parts, count);
    const IoOutcome outcome = sendParts(control_.get(), std::span(parts).first(count));
    if (outcome.kind == IoOutcome::Kind::WouldBlock) break;
    if (!outcome.done()) return breakWith(outcome);
    account(outcome.bytes);
    // Less than all means that the socket has no more room.
    if (outcome.bytes < bytes) break;
  }
  return {};
}

}  // namespace tutti
