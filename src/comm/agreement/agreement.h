// What all ranks must see alike before the first operation: settings that have to be equal, numbers that the smallest
// wish decides (of peers the largest), abilities that count only if everybody has them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "comm/agreement/proposal.h"
#include "comm/plan/message_channels.h"
#include "device/policy.h"

namespace tutti {
class ControlChannel;
}
namespace tutti::topo {
class RankLayout;
struct AgreedGraphs;
struct PeerInfo;
}  // namespace tutti::topo
namespace tutti::transport {
class Transport;
}

namespace tutti::comm {

struct CommSettings;
struct RankFacts;
struct Speeds;

/// What came of it; equal on all ranks.
struct Agreement {
  int nChannels = 1;          ///< the smallest wish
  bool threadsGiven = false;  ///< somebody set NCCL_NTHREADS, if only to the value that the others have
  LinkAbilities links;        ///< what all ranks can do
  MessageLimits messages;
  int lowestComputeCapability = 0;  ///< major * 10 + minor
  int highestComputeCapability = 0;
};

/// Collective. ncclInvalidUsage, on all ranks alike, where a setting differs: its name, two ranks and their values.
/// Where others wish for less than this rank, an INFO line says who; where options differ, warnOfDifferences().
Result<Agreement> agree(ControlChannel& control, std::span<const topo::PeerInfo> peers, const Proposal& own);

/// What the tuner has to know of the ranks; the same on all of them. `graphs` null: nobody knows the machine's links;
/// then those that keep lines whole count as NVLink, the others as PCI.
RankFacts rankFactsFrom(const Agreement& agreement, const topo::RankLayout& layout,
                        std::span<const topo::PeerInfo> peers, const topo::AgreedGraphs* graphs);

/// What the connections that can be made carry: as the graphs say, or, without (null), as it is assumed of such ranks;
/// the same on all of them.
Speeds speedsFrom(const Agreement& agreement, const RankFacts& ranks, const topo::AgreedGraphs* graphs);

}  // namespace tutti::comm
