#include "transport/net/tcp/receiver.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "transport/net/tcp/io.h"

namespace tutti::net::tcp {

namespace {

/// What one call reads when it does not know what is coming. The content is copied once more, so not too much.
constexpr std::size_t kStagingBytes = 8192;

}  // namespace

SocketReceiver::SocketReceiver(SocketLink link)
    : SocketConnection(std::move(link), device::Direction::Recv), staging_(kStagingBytes) {}

SocketReceiver::~SocketReceiver() {
  if (arrivals_ != nullptr) arrivals_->remove(control_.get());
}

void SocketReceiver::heed(std::shared_ptr<EpollSet> arrivals) {
  if (arrivals != nullptr && arrivals->add(control_.get(), came_)) arrivals_ = std::move(arrivals);
}

Result<SocketRequest*> SocketReceiver::irecv(const plugin::NetBuffer& message) {
  TRY(broken_);
  SocketRequest* request = post(message);
  if (request != nullptr) TRY(consume());
  return request;
}

/// The header of the oldest posted receive has come.
Status SocketReceiver::open(SocketRequest& request, const SocketHeader& header) {
  if (header.bytes == kSocketBye) {
    ended_ = true;
    return {};
  }
  if (header.sequence != current_) {
    return breakWith(
        fail(ncclRemoteError,
             "NET/Socket : What {} sends is damaged: message {} came where {} was due. Something on the way, "
             "or in that process, changes data",
             place(), header.sequence, current_));
  }
  if (header.bytes > request.bytes) {
    return breakWith(
        fail(ncclInvalidUsage,
             "NET/Socket : Message truncated: {} sends {} bytes as message {}, but {} were posted for it. Do "
             "both ranks call the same operations with the same counts?",
             place(), header.bytes, current_, request.bytes));
  }
  request.bytes = header.bytes;
  request.viaControl = behindHeader(header);
  opened_ = true;
  guess_ = request.viaControl > kStagingBytes ? request.viaControl : 0;
  settleGuess(request);
  if (header.bytes <= header.content.size()) {
    if (header.bytes > 0) std::memcpy(request.data, header.content.data(), header.bytes);
  } else if (request.viaControl == 0) {
    streams_.add(request.data, request.bytes, request.left);
  }
  return {};
}

std::size_t SocketReceiver::behindHeader(const SocketHeader& header) const {
  if (header.bytes <= header.content.size()) return 0;
  return streams_.none() || header.bytes <= inlineBytes_ ? header.bytes : 0;
}

/// Of what was read to the place of the content, the message keeps what is its own; the rest came behind it.
void SocketReceiver::settleGuess(SocketRequest& request) {
  request.moved = std::min(guessed_, request.viaControl);
  const std::size_t over = guessed_ - request.moved;
  guessed_ = 0;
  if (over == 0) return;
  if (staging_.size() < end_ + over) staging_.resize(end_ + over);
  std::byte* const at = staging_.data() + begin_;
  std::memmove(at + over, at, end_ - begin_);
  std::memcpy(at, request.data + request.moved, over);
  end_ += over;
}

/// Opens the current request if its header is there.
Status SocketReceiver::takeHeader() {
  const std::size_t skipped = std::min(skip_, end_ - begin_);
  begin_ += skipped;
  skip_ -= skipped;
  SocketHeader header;
  if (end_ - begin_ < sizeof(header)) return {};
  std::memcpy(&header, staging_.data() + begin_, sizeof(header));
  begin_ += sizeof(header);
  return open(at(current_), header);
}

/// Deals out what was read ahead.
Status SocketReceiver::consume() {
  while (current_ != posted_ && !ended_) {
    if (!opened_) TRY(takeHeader());
    if (!opened_) return {};
    SocketRequest& request = at(current_);
    const std::size_t step = std::min(end_ - begin_, request.viaControl - request.moved);
    if (step > 0) std::memcpy(request.data + request.moved, staging_.data() + begin_, step);
    begin_ += step;
    request.moved += step;
    if (request.moved < request.viaControl) return {};
    request.headed = true;
    opened_ = false;
    skip_ = socketPadding(request.viaControl);
    ++current_;
  }
  return {};
}

/// One call: the rest of the current message to its place, and what follows into the staging memory. `all`: both are
/// full, so there may be more.
IoOutcome SocketReceiver::fill(bool& all) {
  SocketRequest& request = at(current_);
  // A part of a header may be there.
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (!opened_ && guess_ > 0) return fillWhole(request, all);
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  const std::size_t rest = opened_ ? request.viaControl - request.moved : 0;
  if (rest > 0) parts[count++] = {request.data + request.moved, rest};
  // Behind a long message comes a long one, most likely: its content shall not take the way through here.
  const std::size_t padding = rest > 0 ? socketPadding(request.viaControl) : skip_;
  const std::size_t ahead = guess_ > 0 ? padding + sizeof(SocketHeader) - end_ : kStagingBytes - end_;
  parts[count++] = {staging_.data() + end_, ahead};
  const IoOutcome outcome = receiveParts(control_.get(), std::span(parts).first(count));
  const std::size_t direct = std::min(outcome.bytes, rest);
  request.moved += direct;
  end_ += outcome.bytes - direct;
  all = outcome.bytes == rest + ahead;
  return outcome;
}

/// One call for a header and the content behind it, to its place, if that is as long as the last one was, and then the
/// next header.
IoOutcome SocketReceiver::fillWhole(SocketRequest& request, bool& all) {
  const std::size_t guess = std::min(guess_, request.bytes);
  const std::size_t head = skip_ + sizeof(SocketHeader) - end_;
  const std::size_t ahead = socketPadding(guess) + sizeof(SocketHeader);
  std::array<iovec, 3> parts{
      {{staging_.data() + end_, head}, {request.data, guess}, {staging_.data() + end_ + head, ahead}}};
  const IoOutcome outcome = receiveParts(control_.get(), parts);
  guessed_ = std::min(outcome.bytes - std::min(outcome.bytes, head), guess);
  end_ += outcome.bytes - guessed_;
  all = outcome.bytes == head + guess + ahead;
  return outcome;
}

bool SocketReceiver::due(SteadyClock::time_point now) {
  if (arrivals_ == nullptr || !interest_.idle(now)) return interest_.due(now);
  if (!came_.load(std::memory_order_acquire)) arrivals_->ask(now);
  return came_.load(std::memory_order_acquire);
}

Status SocketReceiver::moveControl() {
  TRY(consume());
  if (current_ == posted_ || ended_) return {};
  const auto now = SteadyClock::now();
  if (!due(now)) return {};
  came_.store(false, std::memory_order_release);
  bool all = true;
  while (all && current_ != posted_ && !ended_) {
    const IoOutcome outcome = fill(all);
    if (outcome.kind == IoOutcome::Kind::WouldBlock) return {};
    if (!outcome.done()) return breakWith(outcome);
    interest_.moved(SteadyClock::now());
    TRY(consume());
  }
  // Nobody tells again of what was left, be it the end of the stream.
  came_.store(true, std::memory_order_release);
  return {};
}

}  // namespace tutti::net::tcp
