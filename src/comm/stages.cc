#include "comm/stages.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/host.h"
#include <fmt/format.h>

#include "base/log.h"

namespace tutti {

namespace {

/// More channels than this pay off only on machines whose links the topology search will know.
constexpr int kDefaultChannels = 8;

std::string versionName(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
}

std::string nameOf(const PeerInfo& peer) {
  return fmt::format("rank {} (host {}, pid {})", peer.rank, peer.hostName.data(), peer.pid);
}

/// Compares everybody with rank 0: every rank sees the same table, hence the same first difference.
Status compare(const PeerInfo& first, const PeerInfo& other) {
  if (other.version != first.version) {
    return fail(ncclInvalidUsage, "Mismatched NCCL version detected : {} has {}, {} has {}. All ranks must load the same "
                "library: check LD_LIBRARY_PATH and LD_PRELOAD on both hosts", nameOf(first), versionName(first.version),
                nameOf(other), versionName(other.version));
  }
  if (other.nRanks != first.nRanks) {
    return fail(ncclInvalidUsage, "Mismatched number of ranks : {} was started with {}, {} with {}", nameOf(first),
                first.nRanks, nameOf(other), other.nRanks);
  }
  if (other.softGpu != first.softGpu) {
    return fail(ncclInvalidUsage, "{} runs on {}, {} on {}: a communicator cannot span both", nameOf(first),
                first.softGpu != 0 ? "the software GPU" : "a CUDA driver", nameOf(other),
                other.softGpu != 0 ? "the software GPU" : "a CUDA driver");
  }
  if (other.configHash != first.configHash) {
    return fail(ncclInvalidUsage, "{} and {} disagree on settings that must be equal on all ranks: compare NCCL_BUFFSIZE, "
                "NCCL_NTHREADS and TUTTI_LAUNCH_SHAPE",
                nameOf(first), nameOf(other));
  }
  return {};
}

}  // namespace

device::Policy policyFor(const Driver& driver, const Runtime& runtime) {
  const bool likeGpu = runtime.launchShape == "GPU" || (runtime.launchShape != "SOFTGPU" && !driver.softGpu);
  device::Policy policy = likeGpu ? device::kGpuPolicy : device::kHostPolicy;
  if (runtime.nThreads > 0) {
    const auto threads = std::min(static_cast<std::uint32_t>(runtime.nThreads), device::kMaxThreads);
    policy.collThreads = policy.collThreadsSmall = threads;
    policy.p2pThreads = (threads + 63) / 64 * 64;  // half of the warps send, half receive
  }
  return policy;
}

std::array<device::SlotBytes, device::kConnKinds> slotBytesFor(const device::Policy& policy, const Runtime& runtime) {
  constexpr auto kGrain = static_cast<std::uint32_t>(device::kGrainBytes);
  std::uint32_t simple = policy.simpleSlotBytes;
  if (runtime.bufferBytes != 0) simple = std::max(runtime.bufferBytes / device::kSteps / kGrain * kGrain, kGrain);
  return {device::SlotBytes{policy.llSlotBytes, policy.ll128SlotBytes, simple},
          device::SlotBytes{policy.meshLlSlotBytes, 0, std::min(simple, policy.meshSlotBytes)}};
}

PeerInfo describeSelf(const Device& device, const Runtime& runtime, int rank, int nRanks) {
  PeerInfo self;
  self.rank = rank;
  self.version = NCCL_VERSION_CODE;
  self.nRanks = nRanks;
  self.cudaDevice = device.ordinal();
  self.hostHash = hostHash(runtime.hostId);
  self.processHash = processHash();
  self.pid = getpid();
  self.computeCapability = device.facts().computeCapability;
  self.deviceUuid = device.facts().uuid;
  self.busId = device.facts().busId;
  const std::string host = hostName();
  std::copy_n(host.begin(), std::min(host.size(), self.hostName.size() - 1), self.hostName.begin());
  const device::Policy policy = policyFor(device.driver(), runtime);
  const auto slots = slotBytesFor(policy, runtime);
  const std::array<std::uint32_t, 8> shape{slots[0][0], slots[0][1], slots[0][2], slots[1][0], slots[1][1], slots[1][2],
                                           policy.maxChannels, policy.collThreads};
  self.configHash = hashBytes(std::as_bytes(std::span(shape)));
  self.softGpu = device.driver().softGpu ? 1 : 0;
  return self;
}

Result<std::vector<PeerInfo>> gatherPeers(ControlChannel& control, const PeerInfo& self) {
  std::vector<PeerInfo> peers(static_cast<std::size_t>(control.size()));
  peers[static_cast<std::size_t>(control.rank())] = self;
  TRY(allGatherValues(control, std::span(peers)));
  for (const PeerInfo& peer : peers) {
    if (const Status difference = compare(peers.front(), peer); !difference.ok()) {
      // Nobody may leave, and be taken for dead, before all have seen the difference themselves.
      control.barrier().ignore();
      return difference;
    }
  }
  return peers;
}

int wishedChannels(const device::Policy& policy, const Config& config, const Runtime& runtime) {
  int lowest = config.values.minCTAs;
  int highest = std::min(config.values.maxCTAs, device::kMaxChannels);
  if (runtime.minChannels > 0) lowest = std::max(lowest, runtime.minChannels);
  if (runtime.maxChannels > 0) highest = std::min(highest, runtime.maxChannels);
  const int suitable = std::min(static_cast<int>(policy.maxChannels), kDefaultChannels);
  return std::clamp(std::max(suitable, lowest), 1, std::max(highest, 1));
}

Result<int> agreeOnChannels(ControlChannel& control, int wish) {
  std::vector<std::int32_t> wishes(static_cast<std::size_t>(control.size()));
  wishes[static_cast<std::size_t>(control.rank())] = wish;
  TRY(allGatherValues(control, std::span(wishes)));
  return *std::min_element(wishes.begin(), wishes.end());
}

}  // namespace tutti
