#include "comm/agreement/peer_table.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/host.h"
#include "base/log.h"
#include "base/ranks/control_channel.h"
#include "comm/settings/comm_settings.h"
#include "gpu/context.h"

namespace tutti::comm {

namespace {

std::string versionName(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
}

/// Which devices this process may see, where that was restricted.
std::string visibleDevices() {
  const std::optional<std::string> list = ProcessEnv().get("CUDA_VISIBLE_DEVICES");
  return list ? fmt::format(" (in this process: {})", *list) : std::string();
}

/// Compares everybody with rank 0: every rank sees the same table, hence the same first difference.
Status compare(const topo::PeerInfo& first, const topo::PeerInfo& other) {
  if (other.version != first.version) {
    return fail(ncclInvalidUsage,
                "Mismatched NCCL version detected : {} has {}, {} has {}. All ranks must load the same "
                "library: check LD_LIBRARY_PATH and LD_PRELOAD on both hosts",
                rankName(first), versionName(first.version), rankName(other), versionName(other.version));
  }
  if (other.nRanks != first.nRanks) {
    return fail(ncclInvalidUsage, "Mismatched number of ranks : {} was started with {}, {} with {}", rankName(first),
                first.nRanks, rankName(other), other.nRanks);
  }
  if (other.softGpu != first.softGpu) {
    return fail(ncclInvalidUsage, "{} runs on {}, {} on {}: a communicator cannot span both", rankName(first),
                first.softGpu != 0 ? "the software GPU" : "a CUDA driver", rankName(other),
                other.softGpu != 0 ? "the software GPU" : "a CUDA driver");
  }
  return {};
}

}  // namespace

std::string rankName(const topo::PeerInfo& peer) {
  return fmt::format("rank {} (host {}, pid {})", peer.rank, peer.hostName.data(), peer.pid);
}

Result<topo::PeerInfo> describeSelf(const gpu::Device& device, const CommSettings& settings, int rank, int nRanks) {
  topo::PeerInfo self;
  self.rank = rank;
  self.version = NCCL_VERSION_CODE;
  self.nRanks = nRanks;
  self.cudaDevice = device.ordinal();
  self.nvmlDevice = device.facts().nvmlIndex;
  ASSIGN(const HostIdentity identity, hostIdentity(settings.hostId));
  self.hostHash = identity.hash;
  self.bootIdUnknown = identity.bootIdUnknown ? 1 : 0;
  self.processHash = processHash();
  self.networkNamespace = networkNamespace();
  self.pid = getpid();
  self.computeCapability = device.facts().computeCapability;
  self.deviceUuid = device.facts().uuid;
  self.busId = device.facts().busId;
  const std::string host = hostName();
  std::copy_n(host.begin(), std::min(host.size(), self.hostName.size() - 1), self.hostName.begin());
  self.softGpu = device.driver().softGpu ? 1 : 0;
  return self;
}

Result<std::vector<topo::PeerInfo>> gatherPeers(ControlChannel& control, const topo::PeerInfo& self) {
  std::vector<topo::PeerInfo> peers(static_cast<std::size_t>(control.size()));
  peers[static_cast<std::size_t>(control.rank())] = self;
  TRY(allGatherValues(control, std::span(peers)));
  for (const topo::PeerInfo& peer : peers) {
    if (const Status difference = compare(peers.front(), peer); !difference.ok()) {
      // Nobody may leave, and be taken for dead, before all have seen the difference themselves.
      control.barrier().ignore();
      return difference;
    }
  }
  return peers;
}

Status refuseSharedDevices(std::span<const topo::PeerInfo> peers) {
  for (std::size_t i = 0; i < peers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (peers[i].hostHash != peers[j].hostHash || peers[i].deviceUuid != peers[j].deviceUuid) continue;
      return fail(ncclInvalidUsage,
                  "Duplicate GPU detected : {} and {} both have the device with bus id {:x}, and "
                  "NCCL_MULTI_RANK_GPU_ENABLE is 0. Each rank must choose a device of its own before its init, by "
                  "cudaSetDevice with its number among the ranks of its host, or by CUDA_VISIBLE_DEVICES{}",
                  rankName(peers[j]), rankName(peers[i]), peers[i].busId, visibleDevices());
    }
  }
  return {};
}

bool sharesDeviceInProcess(std::span<const topo::PeerInfo> peers, int rank) {
  const topo::PeerInfo& self = peers[static_cast<std::size_t>(rank)];
  return std::any_of(peers.begin(), peers.end(), [&](const topo::PeerInfo& peer) {
    return peer.rank != rank && peer.hostHash == self.hostHash && peer.processHash == self.processHash &&
           peer.deviceUuid == self.deviceUuid;
  });
}

}  // namespace tutti::comm
