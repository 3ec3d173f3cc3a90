#include "transport/shm/transport.h"

#include "transport/common/ranks.h"
#include "transport/shm/endpoint.h"

namespace tutti::shm {
namespace {

constexpr transport::FdPurpose kPurpose{"SHM", "tutti-shm", "NCCL_SHM_DISABLE=1 does without shared memory"};

}  // namespace

ShmTransport::ShmTransport(const gpu::Device& device, ShmOptions options, std::shared_ptr<const void> deviceOwner,
                           std::shared_ptr<gpu::MemoryLedger> ledger)
    : options_(options),
      around_(new Surroundings{&device, std::move(deviceOwner), std::move(ledger),
                               std::make_shared<transport::FdServer>(kPurpose), options.patience,
                               !options.directDisabled}) {}

ShmTransport::~ShmTransport() = default;

std::string ShmTransport::whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  if (std::string obstacle = transport::hostObstacle(self, peer); !obstacle.empty()) return obstacle;
  if (self.softGpu != peer.softGpu) return "one rank uses the software GPU, the other does not";
  if (options_.disabled) return "disabled by NCCL_SHM_DISABLE";
  if (!transport::sameProcess(self, peer) && self.networkNamespace != peer.networkNamespace) {
    return "the ranks are in different network namespaces (containers), so no local socket can pass memory between "
           "them";
  }
  return {};
}

Result<bool> ShmTransport::reachable(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  return whyNot(self, peer).empty();
}

Result<transport::LinkQuality> ShmTransport::judge(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  if (!whyNot(self, peer).empty()) return transport::LinkQuality::None;
  // A GPU's store of 128 bytes to host memory may be cut up on its way over PCI.
  return self.softGpu != 0 ? transport::LinkQuality::WholeLines : transport::LinkQuality::Plain;
}

Result<std::unique_ptr<transport::Endpoint>> ShmTransport::openSend(const transport::LinkSpec& link) {
  return shm::ShmEndpoint::open(*around_, link, device::Direction::Send);
}

Result<std::unique_ptr<transport::Endpoint>> ShmTransport::openRecv(const transport::LinkSpec& link) {
  return shm::ShmEndpoint::open(*around_, link, device::Direction::Recv);
}

}  // namespace tutti::shm
