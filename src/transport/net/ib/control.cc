#include "transport/net/ib/control.h"

#include "base/log.h"
#include "transport/net/ib/wire.h"
#include "transport/net/tcp/io.h"

namespace tutti::net::ib {

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

ControlSocket::Peer ControlSocket::look() {
  if (peer_ != Peer::There) return peer_;
  std::byte said{};
  iovec part{&said, 1};
  const IoOutcome outcome = tcp::receiveParts(link_.control.get(), {&part, 1});
  if (outcome.kind == IoOutcome::Kind::WouldBlock) return peer_;
  peer_ = outcome.done() && said == std::byte{kIbBye} ? Peer::Left : Peer::Gone;
  return peer_;
}

void ControlSocket::sayBye() {
  std::byte bye{kIbBye};
  iovec part{&bye, 1};
  static_cast<void>(tcp::sendParts(link_.control.get(), {&part, 1}));
}

}  // namespace tutti::net::ib
