// Messages that a rank waits for and that their sender has long given away: the network holds the operation up, or the
// rank that sends in the sender's stead.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "comm/diagnosis/diagnosis.h"

namespace tutti::comm {

/// Both ends of a connection agree on it: the sender says who keeps it, the receiver that the network brings nothing.
struct HeldMessage {
  int sender = -1;
  int receiver = -1;
  RankState::Hold hold;
};

/// Puts into `own` what its senders say, each of one connection: those of one peer, cause and kind in one. Where
/// there are more than it has room for, those that a relay keeps and those to peers that `own` waits for go first.
/// Pure.
void tellHolds(RankState& own, std::span<const RankState::Hold> each);
/// One that this rank waits for, be it through others. Pure.
std::optional<HeldMessage> heldMessage(const StallCase& stall);
/// A sentence that names who keeps it and why.
std::string describeHeld(const StallCase& stall, const HeldMessage& held);

/// "; it sends to rank 2 (host b, device 0) in the stead of rank 0 (host a, device 0), which waits for that", of ranks
/// that do not answer; empty where they send for nobody.
std::string whomTheySendFor(const StallCase& stall, const std::set<int>& silent);

}  // namespace tutti::comm
