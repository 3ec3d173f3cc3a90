#include "transport/net/endpoint/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/log.h"
#include "transport/net/lane/probe.h"
#include "transport/net/recv/receiver.h"
#include "transport/net/send/sender.h"

namespace tutti::net {
namespace {

static_assert(sizeof(ProbeMessage) <= kProbeBytes);

constexpr std::uint32_t bitOf(std::size_t connection) {
  return 1u << connection;
}

std::uint32_t slotBytesOf(const NetPath& path, device::Protocol protocol) {
  return path.link.slotBytes[static_cast<std::size_t>(protocol)];
}

}  // namespace

std::uint32_t partingsOfSender(const plugin::Net& net) {
  return net.closesPosted() ? 0 : ~0U;
}

NetEndpoint::NetEndpoint(const EndContext& context, NetPath path, const EndPlace& place)
    : device_(context.device),
      options_(context.options),
      commons_(context.commons),
      path_(std::move(path)),
      netDevice_(place.device),
      slots_(place.slots) {
  slots_.onDevice = slots_.onDevice && slotBytesOf(path_, device::Protocol::Simple) != 0;
  path_.farewells = options_.family ? options_.family->farewells : options_.farewells;
  if (options_.family) path_.numbering = options_.family->numbering;
  for (NetLane& lane : lanes_) {
    lane.net = &context.net;
    lane.tag = path_.direction == device::Direction::Send ? path_.link.self.rank : path_.link.peer.rank;
  }
  describe();
  const bool flagged =
      slotBytesOf(path_, device::Protocol::LL) != 0 || slotBytesOf(path_, device::Protocol::LL128) != 0;
  if (slotBytesOf(path_, device::Protocol::Simple) != 0) {
    connections_[kSimple] = std::make_shared<NetConnection>(context.net, path_, netDevice_);
  }
  if (flagged) connections_[kFlagged] = std::make_shared<NetConnection>(context.net, path_, netDevice_);
}

Result<std::unique_ptr<transport::Endpoint>> NetEndpoint::open(const EndContext& context,
                                                               const transport::LinkSpec& link,
                                                               device::Direction direction, const EndPlace& place) {
  std::unique_ptr<NetEndpoint> endpoint(new NetEndpoint(context, NetPath{link, direction, {}}, place));
  TRY(checkSlotsFit(endpoint->path_, context.net, endpoint->netDevice_));
  ASSIGN(endpoint->offer_, endpoint->offer());
  if (direction == device::Direction::Recv) TRY(endpoint->listen());
  return std::unique_ptr<transport::Endpoint>(std::move(endpoint));
}

Status NetEndpoint::listen() {
  for (const auto& connection : connections_) {
    if (connection != nullptr) TRY(connection->listen());
  }
  return {};
}

transport::LinkIdentity NetEndpoint::identity() const {
  return transport::identityOf(path_.link, path_.direction, kWireMagic);
}

bool NetEndpoint::sharesSlots() const {
  return options_.sharedSlots != 0 && path_.link.kind == device::ConnKind::Mesh &&
         slotBytesOf(path_, device::Protocol::Simple) != 0;
}

std::uint32_t NetEndpoint::partings() const {
  const std::uint32_t all = partingsOfSender(*lanes_[kSimple].net);
  return receives() && sharesSlots() ? all & ~bitOf(kSimple) : all;
}

Result<SharingOffer> NetEndpoint::offer() const {
  if (!options_.sharedConnections || !sharesSlots()) return SharingOffer{};
  auto properties = lanes_[kSimple].net->properties(netDevice_);
  if (!properties.ok()) return failNet(path_, properties.status(), "asking for the device's properties");
  const int most = std::min(properties.value().maxRecvs, MultiRecv::kMostParts);
  if (most < 2) return SharingOffer{};
  return SharingOffer{static_cast<std::int16_t>(netDevice_), static_cast<std::int16_t>(most)};
}

int NetEndpoint::peerPlace() const {
  const int rank = path_.link.peer.rank;
  return options_.family ? options_.family->places[static_cast<std::size_t>(rank)] : rank;
}

void NetEndpoint::describe() {
  path_.description = fmt::format("NET/{}/{}{}{}", lanes_[kSimple].net->name(), netDevice_,
                                  slots_.onDevice ? "/GDRDMA" : "", sharedConnection_ != nullptr ? "/Shared" : "");
}

void NetEndpoint::connectShared(const SharingOffer& peers) {
  const int most = std::min(offer_.maxRecvs, peers.maxRecvs);
  if (most > 1) {
    const JoinKey key{peerPlace(), path_.direction, offer_.device, peers.device};
    sharedConnection_ = commons_.joins.enter(key, most, connections_[kSimple]);
    connections_[kSimple] = sharedConnection_->connection;  // of another, the listener is closed: nobody will come
    lanes_[kSimple].tag = path_.link.channel;
    if (path_.direction == device::Direction::Send) lanes_[kSimple].failure = &sharedConnection_->failure;
    describe();
  }
  if (path_.direction == device::Direction::Send || !options_.sharedConnections || !sharesSlots()) return;
  // Also those that have a connection of their own wait for their turn, or others would wait for theirs for ever.
  groups_ = sharedConnection_ != nullptr ? sharedConnection_->groups : nullptr;
  if (groups_ == nullptr) {
    groups_ = std::make_shared<MultiRecv>(commons_.joins.turnsOf(peerPlace()), std::max(most, 1));
  }
  if (sharedConnection_ != nullptr) sharedConnection_->groups = groups_;
}

transport::ConnectHandle NetEndpoint::handle() const {
  WireHandle wire{identity(), {}, {}, offer_, 0, partings()};
  if (path_.direction == device::Direction::Recv && options_.routing != nullptr)
    wire.nic = options_.routing->nicOf(path_.link);
  for (std::size_t j = 0; j < kConnections && path_.direction == device::Direction::Recv; ++j) {
    if (connections_[j] != nullptr) wire.listeners[j] = connections_[j]->handle();
  }
  transport::ConnectHandle handle;
  std::memcpy(handle.bytes.data(), &wire, sizeof(wire));
  return handle;
}

Status NetEndpoint::connect(const transport::ConnectHandle& peer) {
  WireHandle wire;
  std::memcpy(&wire, peer.bytes.data(), sizeof(wire));
  TRY(transport::checkIdentity("NET", path_.link, identity(), wire));
  for (std::size_t j = 0; j < kConnections && path_.direction == device::Direction::Send; ++j) {
    if (connections_[j] != nullptr) connections_[j]->aim(wire.listeners[j]);
  }
  for (std::size_t j = 0; j < kConnections; ++j) lanes_[j].parts = (partings() & wire.parting & bitOf(j)) != 0;
  if (wire.routed != 0) {
    shareable_ = false;
    path_.farewells = options_.farewells;
    path_.numbering.clear();
  }
  connectShared(wire.sharing);
  phase_ = Phase::Joining;
  return {};
}

std::byte* NetEndpoint::probeAt(std::size_t connection) const {
  return memory_->host() + memory_->layout().probe + connection * kProbeBytes;
}

Result<void*> NetEndpoint::postProbe(std::size_t connection) {
  const NetLane& lane = lanes_[connection];
  plugin::NetBuffer message{probeAt(connection), sizeof(ProbeMessage), lane.tag, lane.registration};
  if (path_.direction == device::Direction::Send) {
    auto request = lane.net->isend(lane.connection, message);
    if (!request.ok()) return failNet(path_, request.status(), "isend of the first message");
    return request;
  }
  message.bytes = kProbeBytes;
  auto request = lane.net->irecv(lane.connection, std::span(&message, 1));
  if (!request.ok()) return failNet(path_, request.status(), "irecv of the first message");
  return request;
}

Status NetEndpoint::checkProbe(std::size_t connection, int received) {
  const ProbeMessage expected = probeOf(path_, connection);
  const bool whole = std::memcmp(probeAt(connection), &expected, sizeof(expected)) == 0;
  if (whole && received == sizeof(expected)) return {};
  if (whole && received == 0) {
    lanes_[connection].tellsSizes = false;
    info(kNet,
         "{}: network {} does not say how much it has received (test() writes no sizes): messages that are cut short "
         "on the way will not be noticed",
         path_.text(), lanes_[connection].net->name());
    return {};
  }
  ProbeMessage found;
  std::memcpy(&found, probeAt(connection), sizeof(found));
  return fail(
      ncclSystemError,
      "{}: the first message has {} bytes and is from rank {} for rank {} on channel {}: the network confused its "
      "connections or damaged the message",
      path_.text(), received, found.from, found.to, found.channel);
}

Result<bool> NetEndpoint::probe(std::size_t connection) {
  if (connections_[connection] == nullptr || probed_[connection]) return true;
  if (probes_[connection] == nullptr) {
    if (receives()) std::memset(probeAt(connection), 0, sizeof(ProbeMessage));
    ASSIGN(probes_[connection], postProbe(connection));
    if (probes_[connection] == nullptr) return false;
  }
  int received = 0;
  auto over =
      lanes_[connection].net->test(probes_[connection], receives() ? std::span(&received, 1) : std::span<int>());
  if (!over.ok()) return failNet(path_, over.status(), "test of the first message");
  if (!over.value()) return false;
  probes_[connection] = nullptr;
  probed_[connection] = true;
  if (receives()) TRY(checkProbe(connection, received));
  return true;
}

Status NetEndpoint::start() {
  const TaskSetup setup{.path = path_,
                        .simple = connections_[kSimple] == nullptr ? nullptr : &lanes_[kSimple],
                        .flagged = connections_[kFlagged] == nullptr ? nullptr : &lanes_[kFlagged],
                        .messages = memory_->host() + memory_->layout().messages,
                        .shared = shared_.get()};
  if (path_.direction == device::Direction::Send) {
    task_ = std::make_unique<NetSender>(SendSetup{setup, memory_->sendView(Viewer::Host)});
  } else {
    task_ = std::make_unique<NetReceiver>(RecvSetup{setup, memory_->recvView(Viewer::Host), groups_.get()});
  }
  // A plugin's requests may refer to them until the connection is closed.
  for (std::size_t protocol = 0; protocol < device::kProtocols; ++protocol) {
    const bool simple = protocol == static_cast<std::size_t>(device::Protocol::Simple);
    const auto& connection = connections_[simple ? kSimple : kFlagged];
    if (connection != nullptr) connection->keep(task_->stepEvents(protocol));
  }
  return {};
}

Result<bool> NetEndpoint::ready() {
  if (phase_ == Phase::Opened) return fail(ncclInternalError, "{}: ready() before connect()", path_.text());
  if (phase_ != Phase::Joining) return true;
  if (sharedConnection_ != nullptr) sharedConnection_->complete = true;
  ASSIGN(const bool joined, pollAll(connections_));
  calls_ = true;
  if (!joined) return false;
  TRY(prepare());
  phase_ = Phase::Joined;
  return true;
}

Result<bool> NetEndpoint::meet() {
  if (phase_ == Phase::Ready) return true;
  if (phase_ != Phase::Joined) return fail(ncclInternalError, "{}: meet() before ready()", path_.text());
  ASSIGN(const bool simple, probe(kSimple));
  ASSIGN(const bool flagged, probe(kFlagged));
  if (!simple || !flagged) return false;
  TRY(start());
  phase_ = Phase::Ready;
  return true;
}

transport::ConnView NetEndpoint::view() const {
  if (path_.direction == device::Direction::Send) return memory_->sendView(Viewer::Kernels);
  return memory_->recvView(Viewer::Kernels);
}

}  // namespace tutti::net
