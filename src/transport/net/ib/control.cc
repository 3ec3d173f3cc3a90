#include "transport/net/ib/control.h"

#include "base/log.h"
#include "transport/net/tcp/io.h"

namespace tutti::net::ib {

namespace {

bool isFrame(std::byte first) {
  switch (static_cast<ControlFrame::Kind>(first)) {
    case ControlFrame::Kind::Halts:
    case ControlFrame::Kind::Stopped:
    case ControlFrame::Kind::Pairs:
    case ControlFrame::Kind::Ready:
    case ControlFrame::Kind::Try:
    case ControlFrame::Kind::Answer:
      return true;
  }
  return false;
}

}  // namespace

ControlSocket::ControlSocket(tcp::SocketLink link, milliseconds setup)
    : link_(std::move(link)), deadline_(Deadline::in(setup)), setup_(setup) {}

Status ControlSocket::closed(int error) const {
  return fail(ncclRemoteError,
              "NET/IB : Peer {} closed the connection from {} before its queue pairs stood: {}. It gave up or ended: "
              "look at its log",
              link_.peer.text(), link_.device, error != 0 ? errnoText(error) : "end of stream");
}

Status ControlSocket::overdue() const {
  return fail(ncclRemoteError,
              "NET/IB : Peer {} (over {}) has not said within {} ms which queue pairs it has. Does that process hang?",
              link_.peer.text(), link_.device, setup_.count());
}

/// Whether a block of `bytes` has been moved with what has just been.
Result<bool> ControlSocket::moved(const IoOutcome& outcome, std::size_t bytes) {
  if (!outcome.done() && outcome.kind != IoOutcome::Kind::WouldBlock) return closed(outcome.error);
  moved_ += outcome.bytes;
  if (moved_ == bytes) {
    moved_ = 0;
    return true;
  }
  if (deadline_.expired()) return overdue();
  return false;
}

Result<bool> ControlSocket::send(std::span<const std::byte> block) {
  iovec part{const_cast<std::byte*>(block.data()) + moved_, block.size() - moved_};
  return moved(tcp::sendParts(link_.control.get(), {&part, 1}), block.size());
}

Result<bool> ControlSocket::receive(std::span<std::byte> block) {
  iovec part{block.data() + moved_, block.size() - moved_};
  return moved(tcp::receiveParts(link_.control.get(), {&part, 1}), block.size());
}

Status ControlSocket::checkStanding() const {
  const IoOutcome outcome = tcp::standsBy(link_.control.get());
  return outcome.kind == IoOutcome::Kind::WouldBlock ? Status() : closed(outcome.error);
}

/// False: there is nothing more to read.
bool ControlSocket::readSome() {
  const std::span<std::byte> frame = std::as_writable_bytes(std::span(&coming_, 1));
  iovec part{frame.data() + got_, frame.size() - got_};
  const IoOutcome outcome = tcp::receiveParts(link_.control.get(), {&part, 1});
  got_ += outcome.bytes;
  if (got_ > 0 && frame[0] == std::byte{kIbBye}) {
    peer_ = Peer::Left;
  } else if (got_ > 0 && !isFrame(frame[0])) {
    peer_ = Peer::Gone;
  } else if (got_ == frame.size()) {
    heard_.push_back(coming_);
    got_ = 0;
    return true;
  } else if (!outcome.done() && outcome.kind != IoOutcome::Kind::WouldBlock) {
    peer_ = Peer::Gone;
  }
  return peer_ == Peer::There && outcome.done();
}

ControlSocket::Peer ControlSocket::look() {
  if (peer_ != Peer::There) return peer_;
  flush();
  while (readSome()) {
  }
  return peer_;
}

void ControlSocket::flush() {
  if (going_.empty()) return;
  iovec part{going_.data(), going_.size()};
  const IoOutcome outcome = tcp::sendParts(link_.control.get(), {&part, 1});
  going_.erase(going_.begin(), going_.begin() + static_cast<std::ptrdiff_t>(outcome.bytes));
}

void ControlSocket::tell(const ControlFrame& frame) {
  const auto bytes = std::as_bytes(std::span(&frame, 1));
  going_.insert(going_.end(), bytes.begin(), bytes.end());
  flush();
}

std::optional<ControlFrame> ControlSocket::heard() {
  if (heard_.empty()) return std::nullopt;
  const ControlFrame frame = heard_.front();
  heard_.pop_front();
  return frame;
}

void ControlSocket::sayBye() {
  flush();
  // Within a frame it would not be understood: the peer's host is far behind, and learns that this end is gone.
  if (!going_.empty()) return;
  std::byte bye{kIbBye};
  iovec part{&bye, 1};
  static_cast<void>(tcp::sendParts(link_.control.get(), {&part, 1}));
}

}  // namespace tutti::net::ib
