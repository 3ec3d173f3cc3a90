#include "transport/net/pxn/routed_sender.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "transport/net/pxn/endpoint.h"

namespace tutti::net::pxn {

transport::ConnectHandle RoutedSender::handle() const {
  net::WireHandle wire{transport::identityOf(link_, device::Direction::Send, net::kWireMagic), {}, {}};
  wire.routed = 1;
  wire.parting = net::partingsOfSender(net_);
  transport::ConnectHandle handle;
  std::memcpy(handle.bytes.data(), &wire, sizeof(wire));
  return handle;
}

Status RoutedSender::connectDirectly(const EndPlace& place, const transport::ConnectHandle& peer) {
  NetTransportOptions options = options_;
  options.sharedConnections = false;  // handle() could not say which device it would be
  options.family.reset();             // nor that it would be a connection of our own
  ASSIGN(inner_,
         net::NetEndpoint::open({device_, net_, options, commons_, lent_}, link_, device::Direction::Send, place));
  return inner_->connect(peer);
}

Status RoutedSender::connect(const transport::ConnectHandle& peer) {
  net::WireHandle wire;
  std::memcpy(&wire, peer.bytes.data(), sizeof(wire));
  const SendRoute route = options_.routing->routeOf(link_, wire.nic);
  if (!route.relay) return connectDirectly(route.place, peer);
  TRY(transport::checkIdentity("NET", link_, transport::identityOf(link_, device::Direction::Send, net::kWireMagic),
                               wire));
  const bool messages = link_.kind == device::ConnKind::Mesh;
  const bool simple = link_.slotBytes[static_cast<std::size_t>(device::Protocol::Simple)] != 0;
  const std::uint32_t shared = messages && simple ? poolSlots(options_.sharedSlots) : 0;
  const SenderSetup setup{
      lent_, shared, options_.deviceOwner, options_.ledger, options_.relaySecret, options_.relayPatience};
  inner_ = std::make_unique<RelayEndpoint>(
      device_, setup,
      net::NetPath{
          .link = link_, .direction = device::Direction::Send, .description = {}, .farewells = options_.farewells},
      Way{*route.relay, route.place.device, wire.listeners, wire.parting & net::partingsOfSender(net_)}, net_.name());
  return {};
}

Result<bool> RoutedSender::ready() {
  if (inner_ != nullptr) return inner_->ready();
  return fail(ncclInternalError, "NET: rank {} to rank {}: ready() before connect()", link_.self.rank, link_.peer.rank);
}

Result<bool> RoutedSender::probeCheck() {
  if (inner_ == nullptr) return false;
  return inner_->probeCheck();
}

}  // namespace tutti::net::pxn
