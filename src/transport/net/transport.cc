#include "transport/net/transport.h"

#include "transport/net/endpoint/endpoint.h"
#include "transport/net/pxn/pool.h"
#include "transport/net/pxn/routed_sender.h"

namespace tutti {

NetTransport::NetTransport(const Device& device, Net& net, NetTransportOptions options)
    : device_(&device),
      net_(&net),
      options_(std::move(options)),
      pools_(std::make_shared<net::SharedPools>()),
      lent_(std::make_shared<relay::LentPools>()),
      joins_(std::make_shared<net::SharedJoins>()) {}

Result<bool> NetTransport::reachable(const PeerInfo& self, const PeerInfo& peer) const {
  return self.rank != peer.rank;
}

std::string NetTransport::whyNot(const PeerInfo& self, const PeerInfo& peer) const {
  return self.rank != peer.rank ? "" : "a rank has no connection to itself";
}

Result<LinkQuality> NetTransport::judge(const PeerInfo& self, const PeerInfo& peer) const {
  if (self.rank == peer.rank) return LinkQuality::None;
  return self.softGpu != 0 && peer.softGpu != 0 ? LinkQuality::WholeLines : LinkQuality::Plain;
}

Result<std::unique_ptr<Endpoint>> NetTransport::open(const LinkSpec& link, device::Direction direction) {
  const EndPlace place = options_.routing != nullptr ? options_.routing->placeOf(link, direction) : EndPlace{};
  return net::NetEndpoint::open({*device_, *net_, options_, *pools_, *lent_, *joins_}, link, direction, place);
}

Result<std::unique_ptr<Endpoint>> NetTransport::openSend(const LinkSpec& link) {
  if (options_.routing == nullptr || !options_.routing->routed(link)) return open(link, device::Direction::Send);
  return std::unique_ptr<Endpoint>(
      std::make_unique<relay::RoutedSender>(net::EndContext{*device_, *net_, options_, *pools_, *lent_, *joins_}, link));
}

Result<std::unique_ptr<Endpoint>> NetTransport::openRecv(const LinkSpec& link) {
  return open(link, device::Direction::Recv);
}

}  // namespace tutti
