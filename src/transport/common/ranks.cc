#include "transport/common/ranks.h"

#include <fmt/format.h>

namespace tutti::transport {

bool sameProcess(const PeerInfo& a, const PeerInfo& b) {
  return a.hostHash == b.hostHash && a.processHash == b.processHash;
}

bool sameDevice(const PeerInfo& a, const PeerInfo& b) {
  return a.hostHash == b.hostHash && a.deviceUuid == b.deviceUuid;
}

std::string rankText(const PeerInfo& info) {
  return fmt::format("rank {} (host {}, device {})", info.rank, info.hostName.data(), info.cudaDevice);
}

std::string pairText(const PeerInfo& self, const PeerInfo& peer) {
  return fmt::format("{} with {}", rankText(self), rankText(peer));
}

}  // namespace tutti::transport
