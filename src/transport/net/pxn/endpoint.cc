#include "transport/net/pxn/endpoint.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "gpu/memory_ledger.h"
#include "transport/common/ranks.h"

namespace tutti::net::pxn {

RelayEndpoint::RelayEndpoint(const gpu::Device& device, const SenderSetup& setup, net::NetPath path, const Way& way,
                             std::string_view netName)
    : device_(device),
      setup_(setup),
      path_(std::move(path)),
      way_(way),
      layout_(layoutOf(path_.link.slotBytes, setup.sharedSlots != 0)),
      until_(Deadline::in(setup.patience)) {
  path_.description = fmt::format("NET/{}/{}({})", netName, way_.netDevice, way_.relay.rank);
  hello_.sender = path_.link.self.rank;
  hello_.relay = way_.relay.rank;
}

Status RelayEndpoint::lost(std::string_view why) const {
  return fail(ncclRemoteError,
              "{}: {}, which is to send in its stead, {}. NCCL_PXN_DISABLE=1 makes every rank send by itself",
              path_.text(), transport::rankText(way_.relay), why);
}

Status RelayEndpoint::knock() {
  Fd line = transport::localSocket();
  if (!line.valid()) {
    return fail(ncclSystemError, "{}: a local socket failed: {}; raise the descriptor limit (ulimit -n)", path_.text(),
                errnoText(errno));
  }
  const transport::LocalName name = lineName(setup_.secret, way_.relay.rank);
  if (::connect(line.get(), name.generic(), name.length) != 0) {
    if (errno == EAGAIN || errno == EINTR) return {};
    if (errno != ECONNREFUSED) return lost(fmt::format("cannot be reached: {}", errnoText(errno)));
    return lost("does not listen: it has ended, or does not see the same machine, or NCCL_PXN_DISABLE=1 is set there");
  }
  if (!transport::peerIsOurUser(line.get())) return lost("has a local socket that belongs to another user");
  hello_.nonce = freshNonce();
  hello_.pass = passOf(setup_.secret, hello_);
  if (transport::sendPacket(line.get(), transport::packetOf(hello_)) != transport::PacketIo::Done) return {};
  line_ = std::move(line);
  phase_ = Phase::Greeting;
  return {};
}

Status RelayEndpoint::turnedAway() {
  ++turnedAway_;
  line_.reset();
  phase_ = Phase::Knocking;
  return {};
}

Status RelayEndpoint::listen() {
  std::array<std::byte, kMostBytes> packet;
  while (phase_ != Phase::Ready && phase_ != Phase::Knocking) {
    transport::ReceivedPacket received = transport::receivePacket(line_.get(), packet);
    if (received.state == transport::PacketIo::Gone) {
      if (phase_ == Phase::Greeting) return turnedAway();
      return lost("has closed the local connection; look for its own first error");
    }
    if (received.state == transport::PacketIo::Again) return {};
    if (received.bytes > packet.size()) return lost("talks nonsense");
    TRY(take(std::span(packet).first(received.bytes), std::move(received.attached)));
  }
  return {};
}

Status RelayEndpoint::take(std::span<const std::byte> packet, Fd attached) {
  if (phase_ == Phase::Greeting && packet.size() == sizeof(Challenge)) {
    Challenge challenge;
    std::memcpy(static_cast<void*>(&challenge), packet.data(), sizeof(challenge));
    return order(challenge);
  }
  if (phase_ == Phase::Greeting || packet.size() != sizeof(Answer)) return lost("talks nonsense");
  Answer answer;
  std::memcpy(static_cast<void*>(&answer), packet.data(), sizeof(answer));
  answer.text.back() = 0;
  return take(answer, std::move(attached));
}

Status RelayEndpoint::order(const Challenge& challenge) {
  if (!sameProof(challenge.proof, prove(setup_.secret, hello_, challenge.nonce, false))) {
    return lost("is not who it should be: somebody else listens in its place");
  }
  Order order;
  order.proof = prove(setup_.secret, hello_, challenge.nonce, true);
  order.peer = path_.link.peer.rank;
  order.channel = path_.link.channel;
  order.connKind = path_.link.kind;
  order.netDevice = way_.netDevice;
  order.slotBytes = path_.link.slotBytes;
  order.sharedSlots = setup_.sharedSlots;
  order.listeners = way_.listeners;
  order.parting = way_.parting;
  // This process may have been away for so long that the relay waits no more.
  if (transport::sendPacket(line_.get(), transport::packetOf(order)) != transport::PacketIo::Done) return turnedAway();
  phase_ = Phase::Ordered;
  return {};
}

Status RelayEndpoint::take(const Answer& answer, Fd attached) {
  if (answer.kind == Kind::Pool && phase_ == Phase::Ordered) return joinPool(answer, std::move(attached));
  if (answer.kind == Kind::Memory && phase_ == Phase::Ordered) return adopt(answer.bytes, std::move(attached));
  if (answer.kind == Kind::Joined && phase_ == Phase::Mapped) {
    phase_ = Phase::Joined;
    return {};
  }
  if (answer.kind == Kind::Ready && phase_ == Phase::Meeting) return start();
  if (answer.kind != Kind::Failed || answer.code == 0) return lost("talks nonsense");
  return fail(static_cast<ncclResult_t>(answer.code), "{}: {} cannot send in its stead: {}", path_.text(),
              transport::rankText(way_.relay), answer.text.data());
}

Status RelayEndpoint::joinPool(const Answer& answer, Fd attached) {
  const net::SharedShape shape{setup_.sharedSlots,
                               path_.link.slotBytes[static_cast<std::size_t>(device::Protocol::Simple)], false};
  if (setup_.sharedSlots == 0 || answer.bytes != poolBytes(shape) || !attached.valid()) {
    return lost("offers shared slots of another size");
  }
  const PoolOffer offer{path_.link.channel, way_.relay.rank, answer.pool, shape};
  ASSIGN(slots_,
         setup_.pools.get(device_, offer, std::move(attached), setup_.deviceOwner, {path_.text(), setup_.ledger}));
  return {};
}

Status RelayEndpoint::adopt(std::uint64_t bytes, Fd attached) {
  if (bytes != layout_.bytes || !attached.valid()) return lost("offers memory of another size");
  if (setup_.sharedSlots != 0 && slots_ == nullptr) return lost("offers no shared slots");
  ASSIGN(shm::Segment segment, shm::Segment::adopt(std::move(attached), bytes, path_.text()));
  ASSIGN(memory_, shm::Region::create(device_, std::move(segment), path_.text(), setup_.deviceOwner));
  ASSIGN(steps_, gpu::DeviceBuffer::create(device_, device::kCountersBytes, {path_.text(), setup_.ledger}));
  phase_ = Phase::Mapped;
  return {};
}

Status RelayEndpoint::start() {
  auto& status = *reinterpret_cast<PxnStatusPage*>(memory_->host());
  const device::SendConn view = viewOf(layout_, path_.link.slotBytes, memory_->host(), nullptr);
  task_.emplace(path_, way_.relay, view, status, line_.get(), way_.parting != 0);
  phase_ = Phase::Ready;
  return {};
}

Result<bool> RelayEndpoint::ready() {
  if (phase_ == Phase::Knocking) TRY(knock());
  if (phase_ != Phase::Knocking) TRY(listen());
  if (phase_ >= Phase::Joined) return true;
  if (phase_ == Phase::Mapped || !until_.expired()) return false;
  if (turnedAway_ == 0) return lost("did not answer in time: that process hangs or is stopped");
  return lost(fmt::format("has closed the local connection {} times; look for its own first error", turnedAway_));
}

Result<bool> RelayEndpoint::meet() {
  if (phase_ == Phase::Joined) {
    const Kind kind = Kind::Meet;
    const PacketIo sent = transport::sendPacket(line_.get(), transport::packetOf(kind));
    if (sent == PacketIo::Done) phase_ = Phase::Meeting;
    if (sent == PacketIo::Again) return false;
  }
  TRY(listen());
  return phase_ == Phase::Ready;
}

transport::ConnView RelayEndpoint::view() const {
  device::SendConn view = viewOf(layout_, path_.link.slotBytes, memory_->onDevice(), steps_->data());
  if (slots_ != nullptr) slots_->lend(view);
  return view;
}

}  // namespace tutti::net::pxn
