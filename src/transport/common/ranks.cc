#include "transport/common/ranks.h"

#include <fmt/format.h>

#include <string_view>

namespace tutti::transport {

std::string hostObstacle(const topo::PeerInfo& a, const topo::PeerInfo& b) {
  if (a.hostHash == b.hostHash) return {};
  const bool sameName = std::string_view(a.hostName.data()) == b.hostName.data();
  if (!sameName || a.bootIdUnknown == b.bootIdUnknown) return "the ranks are on different hosts";
  return fmt::format(
      "whether the ranks share a host is not known, for {} cannot read /proc/sys/kernel/random/boot_id "
      "(mount /proc there, or set NCCL_HOSTID alike on all ranks of the host)",
      rankText(a.bootIdUnknown != 0 ? a : b));
}

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
