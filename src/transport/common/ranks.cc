#include "transport/common/ranks.h"

#include <fmt/format.h>

namespace tutti::transport {

bool sameProcess(const topo::PeerInfo& a, const topo::PeerInfo& b) {
  return a.hostHash == b.hostHash && a.processHash == b.processHash;
}

bool sameDevice(const topo::PeerInfo& a, const topo::PeerInfo& b) {
  return a.hostHash == b.hostHash && a.deviceUuid == b.deviceUuid;
}

std::string rankText(const topo::PeerInfo& info) {
  return fmt::format("rank {} (host {}, device {})", info.rank, info.hostName.data(), info.cudaDevice);
}

std::string pairText(const topo::PeerInfo& self, const topo::PeerInfo& peer) {
  return fmt::format("{} with {}", rankText(self), rankText(peer));
}

}  // namespace tutti::transport
