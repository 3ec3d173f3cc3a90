#include "transport/net/pxn/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "transport/common/ranks.h"
#include "transport/net/lane/peer_farewells.h"
#include "transport/net/lane/probe.h"
#include "transport/shm/numa.h"

namespace tutti::net::pxn {
namespace {

constexpr std::uint32_t kMostSlotBytes = 1u << 28;
/// How long a sender that has shown its pass may take to order: its process may be busy.
constexpr std::chrono::seconds kOrderTime{10};
static_assert(sizeof(net::ProbeMessage) <= kProbeRoom);

template <class Message>
const Message* as(std::span<const std::byte> packet, Message& into) {
  if (packet.size() != sizeof(Message)) return nullptr;
  std::memcpy(static_cast<void*>(&into), packet.data(), sizeof(Message));
  return &into;
}

Kind kindOf(std::span<const std::byte> packet) {
  Kind kind{};
  if (packet.size() >= sizeof(kind)) std::memcpy(&kind, packet.data(), sizeof(kind));
  return kind;
}

std::uint32_t slotOf(const device::SlotBytes& slotBytes, device::Protocol protocol) {
  return slotBytes[static_cast<std::size_t>(protocol)];
}

/// What the sender, whose connection it is, says of its only peer in memory that both see.
class BoardFarewells final : public PeerFarewells {
 public:
  explicit BoardFarewells(const PxnStatusPage& status) : status_(status) {}
  bool hasLeft(int) const override { return read(status_.peerLeft) != 0; }

 private:
  const PxnStatusPage& status_;
};

}  // namespace

RelayLink::~RelayLink() {
  if (work_ == nullptr) return;
  host_.group.remove(work_.get());
  host_.connections.leave(*work_);
}

bool RelayLink::listen() {
  std::array<std::byte, kMostBytes> packet;
  for (;;) {
    const transport::ReceivedPacket received = transport::receivePacket(line_.get(), packet);
    if (received.state != transport::PacketIo::Done) return received.state == transport::PacketIo::Again;
    if (received.bytes > packet.size() || !take(std::span(packet).first(received.bytes))) return false;
  }
}

bool RelayLink::take(std::span<const std::byte> packet) {
  if (phase_ == Phase::Silent) return greet(packet);
  if (phase_ == Phase::Greeted) {
    Order order;
    return kindOf(packet) == Kind::Order && as(packet, order) != nullptr && take(order);
  }
  if (kindOf(packet) == Kind::Meet && phase_ == Phase::Joined) {
    phase_ = Phase::Probing;
    return true;
  }
  if (kindOf(packet) != Kind::Wake || phase_ != Phase::Running) return false;
  wake();
  return true;
}

void RelayLink::wake() {
  PxnSendTask::wake(status());
  host_.group.hold();
  host_.group.release();
}

bool RelayLink::greet(std::span<const std::byte> packet) {
  const Hello expected;
  if (as(packet, hello_) == nullptr || hello_.kind != expected.kind || hello_.version != expected.version) return false;
  if (hello_.relay != host_.rank || !sameProof(hello_.pass, passOf(host_.secret, hello_))) return false;
  place_.giveBack();
  until_ = Deadline::in(kOrderTime);
  challenge_ = freshNonce();
  Challenge challenge;
  challenge.nonce = challenge_;
  challenge.proof = prove(host_.secret, hello_, challenge_, false);
  phase_ = Phase::Greeted;
  return transport::sendPacket(line_.get(), transport::packetOf(challenge)) == transport::PacketIo::Done;
}

/// Who cannot prove that it belongs to the communicator gets no answer.
bool RelayLink::take(const Order& order) {
  if (!sameProof(order.proof, prove(host_.secret, hello_, challenge_, true))) return false;
  if (const Status begun = begin(order); !begun.ok()) {
    refuse(begun);
    return false;
  }
  phase_ = Phase::Joining;
  return true;
}

void RelayLink::refuse(Status why) {
  Answer answer;
  answer.code = why.code();
  const std::string said = lastErrorText();
  std::memcpy(answer.text.data(), said.data(), std::min(said.size(), answer.text.size() - 1));
  transport::sendPacket(line_.get(), transport::packetOf(answer));
}

Status RelayLink::checkOrder(const Order& order) const {
  ASSIGN(const int devices, host_.net.devices());
  const auto isRank = [&](int rank) { return rank >= 0 && static_cast<std::size_t>(rank) < host_.peers.size(); };
  bool good = isRank(hello_.sender) && isRank(order.peer) && order.peer != hello_.sender;
  good = good && order.netDevice >= 0 && order.netDevice < devices;
  bool any = false;
  for (const std::uint32_t bytes : order.slotBytes) {
    any = any || bytes != 0;
    good = good && bytes <= kMostSlotBytes && bytes % 128 == 0;
  }
  const bool shares = std::has_single_bit(order.sharedSlots) && order.sharedSlots <= kPoolSlots;
  good = good && (order.sharedSlots == 0 || (shares && slotOf(order.slotBytes, device::Protocol::Simple) != 0));
  if (good && any) return {};
  return fail(ncclInternalError,
              "PXN : rank {} asks rank {} to send to rank {} over device {} of {}, of which there are {}",
              hello_.sender, host_.rank, order.peer, order.netDevice, host_.net.name(), devices);
}

Status RelayLink::begin(const Order& order) {
  TRY(checkOrder(order));
  const auto peerOf = [&](int rank) { return host_.peers[static_cast<std::size_t>(rank)]; };
  path_.link = {peerOf(hello_.sender), peerOf(order.peer), order.channel, order.slotBytes, order.connKind};
  path_.description = fmt::format("NET/{}/{}({})", host_.net.name(), order.netDevice, host_.rank);
  TRY(net::checkSlotsFit(path_, host_.net, order.netDevice));
  TRY(joinPool(order));
  layout_ = layoutOf(order.slotBytes, pool_ != nullptr);
  ASSIGN(memory_, shm::Segment::create(layout_.bytes, shm::numaNodeOf(host_.device), path_.text()));
  new (base()) PxnStatusPage{};
  path_.farewells = std::make_shared<BoardFarewells>(status());
  const bool flagged =
      slotOf(order.slotBytes, device::Protocol::LL) != 0 || slotOf(order.slotBytes, device::Protocol::LL128) != 0;
  const std::array<bool, kConnections> wanted{slotOf(order.slotBytes, device::Protocol::Simple) != 0, flagged};
  for (std::size_t j = 0; j < kConnections; ++j) {
    if (!wanted[j]) continue;
    connections_[j] = std::make_shared<net::NetConnection>(host_.net, path_, order.netDevice);
    connections_[j]->aim(order.listeners[j]);
    lanes_[j].net = &host_.net;
    lanes_[j].tag = hello_.sender;
    lanes_[j].parts = (order.parting >> j & 1) != 0;
  }
  return sendMemory();
}

Status RelayLink::joinPool(const Order& order) {
  if (order.sharedSlots == 0) return {};
  const net::SharedShape shape{order.sharedSlots, slotOf(order.slotBytes, device::Protocol::Simple), false};
  ASSIGN(pool_, host_.pools.get(hello_.sender, order.channel, shape, shm::numaNodeOf(host_.device)));
  return {};
}

Status RelayLink::sendMemory() {
  Answer answer;
  if (pool_ != nullptr) {
    answer.kind = Kind::Pool;
    answer.bytes = poolBytes(pool_->shape());
    answer.pool = pool_->id();
    TRY(send(answer, pool_->descriptor()));
  }
  answer.kind = Kind::Memory;
  answer.bytes = layout_.bytes;
  const Fd descriptor = memory_->takeDescriptor();
  return send(answer, descriptor.get());
}

Status RelayLink::send(const Answer& answer, int descriptor) const {
  if (transport::sendPacket(line_.get(), transport::packetOf(answer), descriptor) == transport::PacketIo::Done)
    return {};
  return fail(ncclSystemError, "{}: the memory could not be given to rank {}; raise the descriptor limit (ulimit -n)",
              path_.text(), hello_.sender);
}

Status RelayLink::tell(Kind kind) const {
  Answer answer;
  answer.kind = kind;
  if (transport::sendPacket(line_.get(), transport::packetOf(answer)) == transport::PacketIo::Done) return {};
  return fail(ncclRemoteError, "{}: rank {} has gone before the connection was there", path_.text(), hello_.sender);
}

Status RelayLink::prepare() {
  for (std::size_t j = 0; j < kConnections; ++j) {
    if (connections_[j] == nullptr) continue;
    lanes_[j].connection = connections_[j]->connection();
    ASSIGN(lanes_[j].registration, connections_[j]->registerMemory(base(), layout_.bytes, plugin::PtrKind::Host));
    lanes_[j].slotRegistration = lanes_[j].registration;
    const net::ProbeMessage probe = net::probeOf(path_, j);
    std::memcpy(base() + layout_.probes + j * kProbeRoom, &probe, sizeof(probe));
  }
  if (pool_ == nullptr) return {};
  ASSIGN(lanes_[kSimple].slotRegistration,
         connections_[kSimple]->registerMemory(pool_->memory(), pool_->bytes(), plugin::PtrKind::Host));
  return {};
}

Result<bool> RelayLink::probe(std::size_t join) {
  if (connections_[join] == nullptr || probed_[join]) return true;
  const net::NetLane& lane = lanes_[join];
  if (probes_[join] == nullptr) {
    const plugin::NetBuffer message{base() + layout_.probes + join * kProbeRoom, sizeof(net::ProbeMessage), lane.tag,
                                    lane.registration};
    auto request = lane.net->isend(lane.connection, message);
    if (!request.ok()) return net::failNet(path_, request.status(), "isend of the first message");
    probes_[join] = request.value();
    if (probes_[join] == nullptr) return false;
  }
  auto over = lane.net->test(probes_[join], {});
  if (!over.ok()) return net::failNet(path_, over.status(), "test of the first message");
  probed_[join] = over.value();
  return over;
}

Status RelayLink::run() {
  net::SendSetup setup;
  setup.path = path_;
  setup.view = viewOf(layout_, path_.link.slotBytes, base(), nullptr);
  setup.simple = connections_[kSimple] == nullptr ? nullptr : &lanes_[kSimple];
  setup.flagged = connections_[kSimple + 1] == nullptr ? nullptr : &lanes_[kSimple + 1];
  setup.messages = base() + layout_.messages;
  setup.shared = pool_.get();
  work_ = std::make_unique<PxnSendTask>(setup, status());
  TRY(host_.group.add(work_.get()));
  host_.connections.enter(*work_, transport::rankText(path_.link.self));
  phase_ = Phase::Running;
  return tell(Kind::Ready);
}

Status RelayLink::advance() {
  if (phase_ == Phase::Joining) {
    ASSIGN(const bool joined, net::pollAll(connections_));
    if (!joined) return {};
    TRY(prepare());
    phase_ = Phase::Joined;
    return tell(Kind::Joined);
  }
  ASSIGN(const bool simple, probe(kSimple));
  ASSIGN(const bool flagged, probe(kSimple + 1));
  return simple && flagged ? run() : Status();
}

bool RelayLink::step() {
  const Status advanced = advance();
  if (!advanced.ok()) refuse(advanced);
  return advanced.ok();
}

}  // namespace tutti::net::pxn
