// What a rank would plan with if it were asked alone: channels, slots, and the numbers of its world. Pure.
#pragma once

#include <array>
#include <span>

#include "device/conn_view.h"

namespace tutti::device {
struct Policy;
}

namespace tutti::gpu {
struct Driver;
}
namespace tutti::topo {
struct ChannelLimits;
struct PeerInfo;
}  // namespace tutti::topo

namespace tutti::comm {

struct CommSettings;
struct Config;

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
