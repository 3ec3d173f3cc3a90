// The stages of init between the bootstrap and the first kernel: each takes values and a control channel, and can be
// tested alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/control_channel.h"
#include "base/status.h"
#include "comm/plan/plan.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/config.h"
#include "gpu/context.h"
#include "topo/channels/inter_node.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

/// "rank 3 (host gpu07, pid 4711)".
std::string rankName(const topo::PeerInfo& peer);

/// This rank's own line in the table of ranks.
topo::PeerInfo describeSelf(const gpu::Device& device, const CommSettings& settings, int rank, int nRanks);

/// Collective: everybody's facts. Refuses, on all ranks alike and by name, ranks that run another version of the
/// library (ncclInvalidUsage), were told another number of ranks, or run on another kind of device.
Result<std::vector<topo::PeerInfo>> gatherPeers(ControlChannel& control, const topo::PeerInfo& self);

/// ncclInvalidUsage, naming both, where two ranks have one GPU.
Status refuseSharedDevices(std::span<const topo::PeerInfo> peers);

/// Whether another rank of this process has the same GPU as `rank`, which indexes `peers`.
bool sharesDeviceInProcess(std::span<const topo::PeerInfo> peers, int rank);

/// Channels this rank would take: what suits the device, within the bounds of configuration and environment.
int wishedChannels(const device::Policy& policy, const Config& config, const CommSettings& settings);

/// The same bounds, for channels whose number comes from graphs.
topo::ChannelLimits channelLimits(const Config& config, const CommSettings& settings);

/// The policy of a world whose links are known: as many channels as their graphs have pay off, on the software GPU as
/// well, where they are wanted to be seen at work.
device::Policy alongGraphs(device::Policy policy, int nChannels);

/// How many of them may be used on a GPU with so many multiprocessors. Blocks of ranks that share it wait for each
/// other, and each fills a multiprocessor: all must fit at the same time. At least one.
int channelsThatFit(int wished, int multiprocessors, std::span<const topo::PeerInfo> peers, const topo::PeerInfo& self);

/// Bytes of one slot by kind of connection and protocol. What NCCL_BUFFSIZE, NCCL_LL_BUFFSIZE and NCCL_LL128_BUFFSIZE
/// ask for is rounded down to whole grains, at least one; an INFO line says so.
std::array<device::SlotBytes, device::kConnKinds> slotBytesFor(const device::Policy& policy,
                                                               const CommSettings& settings);

/// The numbers that suit the world the kernels run in, with TUTTI_LAUNCH_SHAPE and what
/// applySettings() knows applied.
device::Policy policyFor(const gpu::Driver& driver, const CommSettings& settings);

}  // namespace tutti::comm
