// The planner: what a group asked of one communicator -> kernels to launch and peers to connect. A pure function; no
// rank sees what the others were asked, so every choice below rests on values that are equal on all ranks concerned.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/operations.h"
#include "device/policy.h"
#include "device/work.h"

namespace tutti {

/// Facts about the communicator that the planner needs. Equal on all ranks but for `rank`.
struct PlanContext {
  int rank = 0;
  int nRanks = 1;
  unsigned nChannels = 1;             ///< of the communicator
  device::Policy policy = device::kGpuPolicy;
  /// As connections of each kind are made; Simple: multiples of 512.
  std::array<device::SlotBytes, device::kConnKinds> slotBytes{};

  std::uint32_t slotBytesOf(device::ConnKind kind, device::Protocol protocol) const {
    return slotBytes[static_cast<std::size_t>(kind)][static_cast<std::size_t>(protocol)];
  }
};

/// One kernel: its name's parts, its shape, and its works (`colls` or, for Func::SendRecv, `messages`).
struct PlannedLaunch {
  device::Func func = device::Func::AllReduce;
  device::Algorithm algorithm = device::Algorithm::Ring;
  device::Protocol protocol = device::Protocol::Simple;
  device::DevOp op = device::DevOp::Sum;  ///< Sum, or that of one of the works
  ncclDataType_t type = ncclInt8;     ///< of the kernel: ncclInt8 for everything that only moves bytes
  unsigned firstChannel = 0;
  unsigned nChannels = 1;             ///< blocks
  unsigned nThreads = 1;              ///< per block
  std::vector<device::CollWork> colls;
  std::vector<device::P2pWork> messages;

  std::size_t nWorks() const { return colls.size() + messages.size(); }
};

/// Everything to be done for one group.
struct Plan {
  std::vector<PlannedLaunch> launches;      ///< in this order, all on one stream
  std::vector<CUstream_st*> streams;        ///< the application's, without repetition, in order of appearance
  std::vector<int> sendPeers;               ///< ranks that get messages from us, ascending, without ourselves
  std::vector<int> recvPeers;               ///< ranks we get messages from, ascending, without ourselves
  bool usesRing = false;                    ///< some launch goes round the ring: it must be connected
  bool usesTree = false;                    ///< the same for the trees
  bool usesPat = false;                     ///< the same for the neighbours in PAT
  std::vector<int> meshPeers;               ///< ranks that direct algorithms exchange data with, both ways, ascending
};

/// Plans `ops` in call order: first the collectives, those in a row that share a kernel in one launch, then all
/// messages. Collectives without elements are left out; messages without content are not. ncclInvalidUsage: a message
/// to oneself without its other half, or a combination of operator and type that has no kernel.
Result<Plan> makePlan(const PlanContext& context, std::span<const Op> ops);

}  // namespace tutti
