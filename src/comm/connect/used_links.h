// Which connections a kernel that was launched uses, for reports of stalls.
#pragma once

#include <vector>

#include "comm/connect/neighbours.h"
#include "comm/launch/launch_note.h"

namespace tutti::comm {

/// A link that a kernel uses, and by which protocol.
struct UsedLink {
  LinkRequest link;
  device::Protocol protocol = device::Protocol::Simple;
};

/// Of a kernel that was launched. Of PAT both directions are given, though an operation
/// uses one.
std::vector<UsedLink> linksUsedBy(const LaunchNote& note, const Neighbours& neighbours, int nRanks);

}  // namespace tutti::comm
