#include "transport/p2p/p2p_transport.h"

#include <fmt/format.h>

#include "transport/p2p/p2p_endpoint.h"
#include "transport/p2p/p2p_peer.h"

namespace tutti {
namespace {

/// Why two ranks cannot be connected, from facts that both ranks know; empty if nothing speaks against it so far.
std::string plainObstacle(const P2pOptions& options, const PeerInfo& self, const PeerInfo& peer) {
  if (self.hostHash != peer.hostHash) return "the ranks are on different hosts";
  if (self.softGpu != peer.softGpu) return "one rank uses the software GPU, the other does not";
  if (options.disabled && !p2p::sameDevice(self, peer)) return "disabled by NCCL_P2P_DISABLE or NCCL_P2P_LEVEL=LOC";
  return {};
}

/// Whether the two devices reach each other, asked in both directions so that both ranks get the same answer.
Result<std::string> deviceObstacle(const Driver& driver, const PeerInfo& self, const PeerInfo& peer) {
  if (p2p::sameDevice(self, peer)) return std::string();
  ASSIGN(const int mine, findDevice(driver, self.deviceUuid));
  ASSIGN(const int theirs, findDevice(driver, peer.deviceUuid));
  if (mine < 0 || theirs < 0) {
    return fmt::format("the device of {} is not visible to {} (look at CUDA_VISIBLE_DEVICES)", p2p::rankText(peer),
                       p2p::rankText(self));
  }
  CUdevice a = 0;
  CUdevice b = 0;
  TRY(checkCu(driver, driver.cuDeviceGet(&a, mine), "cuDeviceGet", mine));
  TRY(checkCu(driver, driver.cuDeviceGet(&b, theirs), "cuDeviceGet", theirs));
  int there = 0;
  int back = 0;
  TRY(checkCu(driver, driver.cuDeviceCanAccessPeer(&there, a, b), "cuDeviceCanAccessPeer", mine));
  TRY(checkCu(driver, driver.cuDeviceCanAccessPeer(&back, b, a), "cuDeviceCanAccessPeer", theirs));
  if (there != 0 && back != 0) return std::string();
  return fmt::format("CUDA devices {} and {} cannot access each other's memory (nvidia-smi topo -p2p w)", mine, theirs);
}

}  // namespace

Result<bool> P2pTransport::reachable(const PeerInfo& self, const PeerInfo& peer) const {
  if (!plainObstacle(options_, self, peer).empty()) return false;
  ASSIGN(const std::string obstacle, deviceObstacle(device_->driver(), self, peer));
  return obstacle.empty();
}

std::string P2pTransport::whyNot(const PeerInfo& self, const PeerInfo& peer) const {
  std::string obstacle = plainObstacle(options_, self, peer);
  if (!obstacle.empty()) return obstacle;
  auto asked = deviceObstacle(device_->driver(), self, peer);
  return asked.ok() ? asked.value() : "the driver could not say";
}

Result<std::unique_ptr<Endpoint>> P2pTransport::openSend(const LinkSpec& link) {
  return p2p::P2pEndpoint::open(*device_, link, p2p::Side::Sender);
}

Result<std::unique_ptr<Endpoint>> P2pTransport::openRecv(const LinkSpec& link) {
  return p2p::P2pEndpoint::open(*device_, link, p2p::Side::Receiver);
}

}  // namespace tutti
