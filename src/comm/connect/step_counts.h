// How many steps an operation takes on each connection: what its kernel will do, counted beforehand. The kernels' own
// templates run over verbs that only count, so the two cannot come apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/conn_view.h"
#include "device/direction.h"
#include "device/policy.h"
#include "device/work.h"
#include "topo/channels/rank_channels.h"

namespace tutti::comm {

/// Steps over one connection of a channel.
struct StepCount {
  int peer = -1;
  device::Direction direction = device::Direction::Send;
  device::ConnKind kind = device::ConnKind::Graph;
  device::Protocol protocol = device::Protocol::Simple;
  std::uint64_t steps = 0;      ///< never 0
  std::uint32_t stepBytes = 0;  ///< at most
};

/// A channel as one rank's kernel sees it.
struct CountedChannel {
  int rank = 0;
  int nRanks = 1;
  unsigned channel = 0;
  device::World world = device::World::Gpu;
  std::span<const std::int32_t> ring;  ///< all ranks, from this one on
  const topo::RankChannel* place = nullptr;
  /// Bytes of the slots of a connection of the channel. It must not ask for one that does not exist.
  std::function<device::SlotBytes(int peer, device::ConnKind kind, device::Direction direction)> slots;
};

/// The kernel of a collective.
struct CountedKernel {
  device::Func func = device::Func::AllReduce;
  device::Algorithm algorithm = device::Algorithm::Ring;
  device::Protocol protocol = device::Protocol::Simple;
  device::DevOp op = device::DevOp::Sum;
  std::size_t elementBytes = 1;  ///< of the kernel's type: 1, 2, 4 or 8
};

/// Of a work that includes the channel. `counts`: what was there is forgotten. None of algorithms that no host thread
/// moves anything for (direct ones), nor of those of a network that reduces.
void countSteps(const CountedChannel& channel, const CountedKernel& kernel, const device::CollWork& work,
                std::vector<StepCount>& counts);
/// The same for messages: that it sends first.
void countSteps(const CountedChannel& channel, const device::P2pWork& work, std::vector<StepCount>& counts);

}  // namespace tutti::comm
