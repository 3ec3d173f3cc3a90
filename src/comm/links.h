// Which connections the operations of a plan run over: plain facts -> a value. They are opened when first used.
#pragma once

#include <vector>

#include "comm/connect.h"
#include "comm/launch.h"
#include "comm/plan.h"
#include "topo/across.h"

namespace tutti {

/// Whom a rank is joined with in each structure that algorithms follow; made once, asked at every operation.
struct Neighbours {
  int rank = 0;
  std::vector<RankChannel> channels;
  /// Links to these neighbours; a peer once in each, on the channels that have it.
  std::vector<LinkRequest> ring;
  std::vector<LinkRequest> tree;
  std::vector<LinkRequest> pat;
};

Neighbours neighboursOf(int rank, int nRanks, std::vector<RankChannel> channels);

/// Every connection that `plan` uses, on the channels that use it, without repetition. The rank at the other end of
/// each finds the mirrored one in its own list if it was given the same collectives and the other half of each message.
std::vector<LinkRequest> linksOf(const Plan& plan, const Neighbours& neighbours);

/// A link that a kernel uses, and by which protocol.
struct UsedLink {
  LinkRequest link;
  device::Protocol protocol = device::Protocol::Simple;
};

/// The same for a kernel that was launched, for reports of stalls. Of PAT both directions are given, though an operation
/// uses one.
std::vector<UsedLink> linksUsedBy(const LaunchNote& note, const Neighbours& neighbours, int nRanks);

}  // namespace tutti
