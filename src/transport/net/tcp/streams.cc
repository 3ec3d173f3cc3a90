#include "transport/net/tcp/streams.h"

#include <algorithm>

namespace tutti::net::tcp {

namespace {

/// Pieces begin at whole pages, which copies like best.
constexpr std::size_t kPieceUnit = 4096;

std::size_t divideUp(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::size_t socketPieceBytes(std::size_t bytes, std::size_t streams, std::size_t minPiece) {
  const std::size_t pieces = std::clamp(bytes / std::max<std::size_t>(minPiece, 1), std::size_t{1}, streams);
  return divideUp(divideUp(bytes, pieces), kPieceUnit) * kPieceUnit;
}

SocketStreams::SocketStreams(std::vector<Fd> sockets, device::Direction direction, std::size_t minPiece)
    : direction_(direction), minPiece_(minPiece) {
  for (Fd& socket : sockets) streams_.emplace_back(std::move(socket), direction);
}

Status SocketStreams::startHelpers(int threads) {
  const std::size_t count = std::min(static_cast<std::size_t>(std::max(threads, 0)), streams_.size());
  const char* name = direction_ == device::Direction::Send ? "NCCL SockS" : "NCCL SockR";
  for (std::size_t first = 0; first < count; ++first) {
    std::vector<SocketStream*> share;
    for (std::size_t i = first; i < streams_.size(); i += count) share.push_back(&streams_[i]);
    ASSIGN(auto helper, SocketHelper::start(std::move(share), name));
    helpers_.push_back(std::move(helper));
  }
  return {};
}

std::vector<int> SocketStreams::fds() const {
  std::vector<int> all;
  for (const SocketStream& stream : streams_) all.push_back(stream.fd());
  return all;
}

void SocketStreams::add(std::byte* data, std::size_t bytes, std::atomic<std::uint32_t>& left) {
  const std::size_t size = socketPieceBytes(bytes, streams_.size(), minPiece_);
  left.store(static_cast<std::uint32_t>(divideUp(bytes, size)), std::memory_order_relaxed);
  for (std::size_t at = 0; at < bytes; at += size) {
    streams_[next_].push({.data = data + at, .bytes = std::min(size, bytes - at), .left = &left});
    if (!helpers_.empty()) helpers_[next_ % helpers_.size()]->notify();
    next_ = (next_ + 1) % streams_.size();
  }
}

std::optional<IoOutcome> SocketStreams::advance() {
  for (const auto& helper : helpers_) {
    if (auto failure = helper->failure()) return failure;
  }
  if (!helpers_.empty()) return std::nullopt;
  for (SocketStream& stream : streams_) {
    if (stream.idle()) continue;
    const IoOutcome outcome = stream.advance();
    if (!outcome.done() && outcome.kind != IoOutcome::Kind::WouldBlock) return outcome;
  }
  return std::nullopt;
}

}  // namespace tutti::net::tcp
