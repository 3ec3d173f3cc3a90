#include "transport/net/tcp/sender.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/log.h"

namespace tutti::net::tcp {

namespace {

/// Parts of one call: header, content and padding of eight messages.
constexpr std::size_t kParts = 24;

}  // namespace

SocketSender::~SocketSender() {
  if (!broken_.ok() || current_ != posted_) return;
  SocketHeader bye{.bytes = kSocketBye, .sequence = posted_};
  iovec part{&bye, sizeof(bye)};
  // Where it cannot be sent the peer sees an end without it, and says so.
  static_cast<void>(sendParts(control_.get(), {&part, 1}));
}

Result<SocketRequest*> SocketSender::isend(const plugin::NetBuffer& message) {
  TRY(broken_);
  if (message.bytes > INT_MAX) {
    return fail(ncclInvalidArgument, "NET/Socket : A message to {} of {} bytes is too long: at most {}", place(),
                message.bytes, INT_MAX);
  }
  SocketRequest* request = post(message);
  if (request == nullptr) return nullptr;
  if (sizesBuffer_ && streams_.none()) makeRoom(message.bytes);
  if (message.bytes <= request->header.content.size()) {
    request->viaControl = 0;
    if (message.bytes > 0) std::memcpy(request->header.content.data(), request->data, message.bytes);
  } else if (!streams_.none() && message.bytes > inlineBytes_) {
    request->viaControl = 0;
    streams_.add(request->data, request->bytes, request->left);
  }
  // On the one socket, one system call of test() takes all that were posted.
  if (!streams_.none()) TRY(advance());
  return request;
}

void SocketSender::makeRoom(std::size_t bytes) {
  const std::size_t wanted = std::min(bytes, kMostSendBuffer);
  if (wanted <= room_) return;
  room_ = wanted;
  sizeSendBuffer(control_.get(), room_);
}

Result<bool> SocketSender::delivered() {
  TRY(broken_);
  if (acked_ == posted_) return true;
  bool all = true;
  bool acked = streams_.none() && current_ == posted_;
  const std::vector<int> streams = streams_.fds();
  const auto now = SteadyClock::now();
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    const auto sample = sampleAcks(i == 0 ? control_.get() : streams[i - 1]);
    acked = acked && sample && sample->nothingUnderWay();
    if (!sample) continue;
    const TcpAckMonitor::Verdict verdict = watches_[i].judge(*sample, now, silence_);
    if (verdict == TcpAckMonitor::Verdict::Silent || verdict == TcpAckMonitor::Verdict::Swallowed) {
      return breakWith(verdict, *sample);
    }
    all = all && verdict == TcpAckMonitor::Verdict::Delivered;
  }
  if (acked) acked_ = posted_;
  return all;
}

/// What the control socket has to carry next: header, content and padding of each message. Returns the bytes.
std::size_t SocketSender::gather(std::span<iovec> parts, std::size_t& count) {
  static std::array<std::byte, kSocketUnit> padding{};
  std::size_t bytes = 0;
  for (std::uint32_t number = current_; number != posted_ && count + 3 <= parts.size(); ++number) {
    SocketRequest& request = at(number);
    std::size_t gone = request.moved;
    const auto add = [&](std::byte* data, std::size_t size) {
      const std::size_t skipped = std::min(gone, size);
      gone -= skipped;
      if (skipped < size) parts[count++] = {data + skipped, size - skipped};
      bytes += size - skipped;
    };
    add(reinterpret_cast<std::byte*>(&request.header), sizeof(request.header));
    add(request.data, request.viaControl);
    add(padding.data(), socketPadding(request.viaControl));
  }
  return bytes;
}

void SocketSender::account(std::size_t moved) {
  while (current_ != posted_) {
    SocketRequest& request = at(current_);
    const std::size_t all = sizeof(SocketHeader) + request.viaControl + socketPadding(request.viaControl);
    const std::size_t step = std::min(moved, all - request.moved);
    request.moved += step;
    moved -= step;
    if (request.moved < all) return;
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

}  // namespace tutti::net::tcp
