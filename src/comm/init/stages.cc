#include "comm/init/stages.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include "base/host.h"

#include "base/log.h"

namespace tutti::comm {

namespace {

/// More channels than this pay off only on machines whose links the topology search will know.
constexpr int kDefaultChannels = 8;

std::string versionName(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
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

/// Bytes of one slot: an eighth of the buffer that was asked for, in whole grains; `usual` if nothing was asked for.
std::uint32_t slotFrom(const char* setting, std::uint32_t buffer, std::uint32_t grain, std::uint32_t usual) {
  if (buffer == 0) return usual;
  const std::uint32_t slot = std::max(buffer / device::kSteps / grain * grain, grain);
  if (slot * device::kSteps != buffer) {
    info(kInit | kEnv, "{} {} is not a multiple of {} bytes ({} slots of whole grains): using {}", setting, buffer,
         grain * device::kSteps, device::kSteps, slot * device::kSteps);
  }
  return slot;
}

}  // namespace

std::string rankName(const topo::PeerInfo& peer) {
  return fmt::format("rank {} (host {}, pid {})", peer.rank, peer.hostName.data(), peer.pid);
}

device::Policy policyFor(const gpu::Driver& driver, const CommSettings& settings) {
  const bool likeGpu = settings.launchShape == "GPU" || (settings.launchShape != "SOFTGPU" && !driver.softGpu);
  return applySettings(likeGpu ? device::kGpuPolicy : device::kHostPolicy, settings.tuning);
}

std::array<device::SlotBytes, device::kConnKinds> slotBytesFor(const device::Policy& policy,
                                                               const CommSettings& settings) {
  // Half of an LL line and 15 of 16 words of an LL128 line are content, which has to come in grains.
  constexpr auto kSimpleGrain = static_cast<std::uint32_t>(device::kGrainBytes);
  constexpr std::uint32_t kLlGrain = 2 * kSimpleGrain;
  constexpr std::uint32_t kLl128Grain = 16 * 128;
  const BufferSettings& asked = settings.buffers;
  const std::uint32_t ll = slotFrom("NCCL_LL_BUFFSIZE", asked.ll, kLlGrain, policy.slotBytes[0]);
  const std::uint32_t ll128 = slotFrom("NCCL_LL128_BUFFSIZE", asked.ll128, kLl128Grain, policy.slotBytes[1]);
  const std::uint32_t simple = slotFrom("NCCL_BUFFSIZE", asked.simple, kSimpleGrain, policy.slotBytes[2]);
  return {device::SlotBytes{ll, ll128, simple},
          device::SlotBytes{std::min(ll, policy.meshSlotBytes[0]), 0, std::min(simple, policy.meshSlotBytes[2])}};
}

topo::PeerInfo describeSelf(const gpu::Device& device, const CommSettings& settings, int rank, int nRanks) {
  topo::PeerInfo self;
  self.rank = rank;
  self.version = NCCL_VERSION_CODE;
  self.nRanks = nRanks;
  self.cudaDevice = device.ordinal();
  self.nvmlDevice = device.facts().nvmlIndex;
  self.hostHash = hostHash(settings.hostId);
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
                  "NCCL_MULTI_RANK_GPU_ENABLE is 0",
                  rankName(peers[j]), rankName(peers[i]), peers[i].busId);
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

topo::ChannelLimits channelLimits(const Config& config, const CommSettings& settings) {
  topo::ChannelLimits limits{config.values.minCTAs, std::min(config.values.maxCTAs, device::kMaxChannels)};
  if (settings.minChannels > 0) limits.fewest = std::max(limits.fewest, settings.minChannels);
  if (settings.maxChannels > 0) limits.most = std::min(limits.most, settings.maxChannels);
  return limits;
}

int wishedChannels(const device::Policy& policy, const Config& config, const CommSettings& settings) {
  const topo::ChannelLimits limits = channelLimits(config, settings);
  const int suitable = std::min(static_cast<int>(policy.maxChannels), kDefaultChannels);
  return std::clamp(std::max(suitable, limits.fewest), 1, std::max(limits.most, 1));
}

device::Policy alongGraphs(device::Policy policy, int nChannels) {
  constexpr std::uint64_t kBytesPerHostChannel = 4 << 10;
  policy.maxChannels = static_cast<std::uint32_t>(nChannels);
  if (policy.world == device::World::Host) {
    policy.bytesPerThread.fill(kBytesPerHostChannel);
    policy.messagePerChannel = 16 * kBytesPerHostChannel;
  }
  return policy;
}

int channelsThatFit(int wished, int multiprocessors, std::span<const topo::PeerInfo> peers,
                    const topo::PeerInfo& self) {
  const auto sharing = std::count_if(peers.begin(), peers.end(),
                                     [&](const topo::PeerInfo& peer) { return peer.deviceUuid == self.deviceUuid; });
  if (sharing <= 1) return wished;
  const int fitting = std::max(1, std::min(wished, multiprocessors / static_cast<int>(sharing)));
  if (fitting < wished) {
    info(kInit, "{} ranks share the GPU of {}, which has {} multiprocessors: {} channels instead of {}", sharing,
         rankName(self), multiprocessors, fitting, wished);
  }
  return fitting;
}

}  // namespace tutti::comm
