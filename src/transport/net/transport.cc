#include "transport/net/transport.h"

#include "transport/net/endpoint/endpoint.h"
#include "transport/net/pxn/pool.h"
#include "transport/net/pxn/routed_sender.h"

namespace tutti::net {

std::shared_ptr<NetCommons> makeNetCommons() {
  return std::make_shared<NetCommons>();
}

NetTransport::NetTransport(const gpu::Device& device, plugin::Net& net, NetTransportOptions options)
    : device_(&device),
      net_(&net),
      options_(std::move(options)),
      commons_(options_.family ? options_.family->commons : std::make_shared<NetCommons>()),
      lent_(std::make_shared<pxn::LentPools>()) {}

Result<bool> NetTransport::reachable(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  return self.rank != peer.rank;
}

std::string NetTransport::whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  return self.rank != peer.rank ? "" : "a rank has no connection to itself";
}

Result<transport::LinkQuality> NetTransport::judge(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  if (self.rank == peer.rank) return transport::LinkQuality::None;
  return self.softGpu != 0 && peer.softGpu != 0 ? transport::LinkQuality::WholeLines : transport::LinkQuality::Plain;
}

Result<std::unique_ptr<transport::Endpoint>> NetTransport::open(const transport::LinkSpec& link,
                                                                device::Direction direction) {
  const EndPlace place = options_.routing != nullptr ? options_.routing->placeOf(link, direction) : EndPlace{};
  return net::NetEndpoint::open({*device_, *net_, options_, *commons_, *lent_}, link, direction, place);
}

Result<std::unique_ptr<transport::Endpoint>> NetTransport::openSend(const transport::LinkSpec& link) {
  if (options_.routing == nullptr || !options_.routing->routed(link)) return open(link, device::Direction::Send);
  return std::unique_ptr<transport::Endpoint>(
      std::make_unique<pxn::RoutedSender>(net::EndContext{*device_, *net_, options_, *commons_, *lent_}, link));
}

Result<std::unique_ptr<transport::Endpoint>> NetTransport::openRecv(const transport::LinkSpec& link) {
  return open(link, device::Direction::Recv);
}

}  // namespace tutti::net
