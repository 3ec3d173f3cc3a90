#include "transport/p2p/transport.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "transport/common/ranks.h"
#include "transport/p2p/endpoint.h"

namespace tutti::p2p {
namespace {

/// Why two ranks cannot be connected, from facts that both ranks know; empty if nothing speaks against it so far.
std::string plainObstacle(const P2pOptions& options, const topo::PeerInfo& self, const topo::PeerInfo& peer) {
  if (std::string obstacle = transport::hostObstacle(self, peer); !obstacle.empty()) return obstacle;
  if (self.softGpu != peer.softGpu) return "one rank uses the software GPU, the other does not";
  if (options.disabled && !transport::sameDevice(self, peer))
    return "disabled by NCCL_P2P_DISABLE or NCCL_P2P_LEVEL=LOC";
  return {};
}

}  // namespace

P2pTransport::P2pTransport(const gpu::Device& device, P2pOptions options, std::shared_ptr<const void> deviceOwner,
                           std::shared_ptr<gpu::MemoryLedger> ledger)
    : device_(&device),
      options_(options),
      slabs_(std::make_shared<Slabs>(device, options, std::move(deviceOwner), std::move(ledger))),
      visible_(gpu::DeviceIndex::read(device.driver())) {}

P2pTransport::~P2pTransport() = default;

/// What this process's driver says against the two devices, asked in both directions; empty if nothing, or if it does
/// not see one of them (then mapping the peer's memory will tell).
Result<std::string> P2pTransport::deviceObstacle(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  if (transport::sameDevice(self, peer)) return std::string();
  TRY(visible_.status());
  const gpu::Driver& driver = device_->driver();
  const int mine = visible_.value().ordinalOf(self.deviceUuid);
  const int theirs = visible_.value().ordinalOf(peer.deviceUuid);
  if (mine < 0 || theirs < 0) return std::string();
  CUdevice a = 0;
  CUdevice b = 0;
  TRY(gpu::checkCu(driver, driver.cuDeviceGet(&a, mine), "cuDeviceGet", mine));
  TRY(gpu::checkCu(driver, driver.cuDeviceGet(&b, theirs), "cuDeviceGet", theirs));
  int there = 0;
  int back = 0;
  TRY(gpu::checkCu(driver, driver.cuDeviceCanAccessPeer(&there, a, b), "cuDeviceCanAccessPeer", mine));
  TRY(gpu::checkCu(driver, driver.cuDeviceCanAccessPeer(&back, b, a), "cuDeviceCanAccessPeer", theirs));
  if (there != 0 && back != 0) return std::string();
  return fmt::format("CUDA devices {} and {} cannot access each other's memory (nvidia-smi topo -p2p w)", mine, theirs);
}

/// Atomic operations of one device on another's memory work over NVLink and not over PCI. No for devices that this
/// process does not see.
bool P2pTransport::joinedByNvlink(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  const gpu::Driver& driver = device_->driver();
  if (driver.cuDeviceGetP2PAttribute == nullptr || !visible_.ok()) return false;
  const int mine = visible_.value().ordinalOf(self.deviceUuid);
  const int theirs = visible_.value().ordinalOf(peer.deviceUuid);
  if (mine < 0 || theirs < 0) return false;
  CUdevice a = 0;
  CUdevice b = 0;
  int atomics = 0;
  const bool asked =
      driver.cuDeviceGet(&a, mine) == CUDA_SUCCESS && driver.cuDeviceGet(&b, theirs) == CUDA_SUCCESS &&
      driver.cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, a, b) == CUDA_SUCCESS;
  return asked && atomics != 0;
}

/// All that both ranks know alike. Another process may see other devices (CUDA_VISIBLE_DEVICES) and hear another answer
/// from its driver, so the driver is asked here only within one process, and by open() otherwise: a rank that then
/// fails to open tells its peer, and both go on to the next transport together.
Result<std::string> P2pTransport::commonObstacle(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  std::string obstacle = plainObstacle(options_, self, peer);
  if (!obstacle.empty() || !transport::sameProcess(self, peer)) return obstacle;
  return deviceObstacle(self, peer);
}

Status P2pTransport::checkLink(const transport::LinkSpec& link) const {
  ASSIGN(const std::string obstacle, deviceObstacle(link.self, link.peer));
  if (obstacle.empty()) return {};
  return fail(ncclSystemError, "P2P connection of {} cannot be opened: {}", transport::pairText(link.self, link.peer),
              obstacle);
}

bool P2pTransport::pulls() const {
  return device_->driver().softgpuMemoryWindow != nullptr && !options_.directDisabled;
}

Result<bool> P2pTransport::reachable(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  ASSIGN(const std::string obstacle, commonObstacle(self, peer));
  return obstacle.empty();
}

std::string P2pTransport::whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  auto obstacle = commonObstacle(self, peer);
  return obstacle.ok() ? obstacle.value() : "the driver could not say";
}

Result<transport::LinkQuality> P2pTransport::judge(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
  std::string obstacle = plainObstacle(options_, self, peer);
  if (obstacle.empty()) {
    ASSIGN(obstacle, deviceObstacle(self, peer));
  }
  if (!obstacle.empty()) return transport::LinkQuality::None;
  const bool whole = transport::sameDevice(self, peer) || self.softGpu != 0 || joinedByNvlink(self, peer);
  return whole ? transport::LinkQuality::WholeLines : transport::LinkQuality::Plain;
}

Result<std::unique_ptr<transport::Endpoint>> P2pTransport::openSend(const transport::LinkSpec& link) {
  TRY(checkLink(link));
  return P2pEndpoint::open(slabs_, link, device::Direction::Send, pulls());
}

Result<std::unique_ptr<transport::Endpoint>> P2pTransport::openRecv(const transport::LinkSpec& link) {
  TRY(checkLink(link));
  return P2pEndpoint::open(slabs_, link, device::Direction::Recv, pulls());
}

}  // namespace tutti::p2p
