#include "comm/agreement/wishes.h"

#include <algorithm>

#include "base/log.h"
#include "comm/agreement/peer_table.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/config.h"
#include "device/policy.h"
#include "gpu/driver.h"
#include "topo/channels/channel_limits.h"

namespace tutti::comm {

namespace {

/// More channels than this pay off only on machines whose links the topology search will know.
constexpr int kDefaultChannels = 8;

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

device::Policy policyFor(const gpu::Driver& driver, const CommSettings& settings) {
  const bool likeGpu = settings.launchShape == "GPU" ||
                       (settings.launchShape != "SOFTGPU" && (!driver.softGpu || settings.kernels.fatbins));
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
