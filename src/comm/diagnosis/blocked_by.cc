#include "comm/diagnosis/blocked_by.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

namespace tutti::comm {

namespace {

using Starving = std::array<ChannelBits, device::kConnKinds>;

/// What the sender's side says of its messages to `receiver` on connections of which that gets nothing; null: nothing
/// is kept. Others count for nothing: the network does not take what the receiver has not asked for either.
const RankState::Hold* holdOf(const StallCase& stall, int sender, int receiver, const Starving& starving) {
  const RankState* const state = stall.stateOf(sender);
  if (state == nullptr) return nullptr;
  for (const RankState::Hold& hold : state->holds) {
    if (hold.receiver != receiver || hold.blockedBy == proxy::BlockedBy::Nobody || hold.relay >= stall.nRanks) continue;
    if ((hold.channels & starving[static_cast<std::size_t>(hold.kind)]) != 0) return &hold;
  }
  return nullptr;
}

}  // namespace

void tellHolds(RankState& own, std::span<const RankState::Hold> each) {
  std::map<std::tuple<int, device::ConnKind, int, proxy::BlockedBy>, ChannelBits> joined;
  for (const RankState::Hold& hold : each)
    joined[{hold.receiver, hold.kind, hold.relay, hold.blockedBy}] |= hold.channels;
  std::vector<RankState::Hold> holds;
  for (const auto& [key, channels] : joined) {
    const auto& [receiver, kind, relay, blockedBy] = key;
    if (blockedBy != proxy::BlockedBy::Nobody) holds.push_back({receiver, relay, blockedBy, kind, channels});
  }
  std::stable_partition(holds.begin(), holds.end(), [&](const RankState::Hold& hold) {
    const bool waited = std::find(own.waitsFor.begin(), own.waitsFor.end(), hold.receiver) != own.waitsFor.end();
    return waited || hold.blockedBy == proxy::BlockedBy::Relay;
  });
  own.holds = {};
  std::copy_n(holds.begin(), std::min(holds.size(), own.holds.size()), own.holds.begin());
}

/// Breadth first, along who waits for whom.
std::optional<HeldMessage> heldMessage(const StallCase& stall) {
  std::vector<int> reached{stall.self};
  std::set<int> seen{stall.self};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const int receiver = reached[i];
    const RankState* const state = stall.stateOf(receiver);
    if (state == nullptr || stall.gone(receiver) || stall.moves(receiver)) continue;
    for (std::size_t w = 0; w < state->waitsFor.size(); ++w) {
      const int sender = state->waitsFor[w];
      if (sender < 0 || sender >= stall.nRanks) continue;
      const RankState::Hold* const hold = holdOf(stall, sender, receiver, state->starves[w]);
      if (hold != nullptr) return HeldMessage{sender, receiver, *hold};
      if (seen.insert(sender).second) reached.push_back(sender);
    }
  }
  return std::nullopt;
}

std::string describeHeld(const StallCase& stall, const HeldMessage& held) {
  const auto named = [&](int rank) { return rank == stall.self ? "this rank" : stall.describe(rank); };
  const std::string sender = named(held.sender);
  const std::string receiver = named(held.receiver);
  if (held.hold.relay < 0) {
    return fmt::format(
        "{} waits for what {} has sent: the network does not carry it. Look at the way between their hosts, and "
        "whether the progress engine of rank {} hangs",
        receiver, sender, held.receiver);
  }
  const std::string relay = named(held.hold.relay);
  if (held.hold.blockedBy == proxy::BlockedBy::Relay) {
    return fmt::format(
        "{} holds it up: it sends to {} in the stead of {}, and its progress engine does not turn: it hangs in a call "
        "of the network, or gets no processor. NCCL_PXN_DISABLE=1 makes every rank send by itself",
        relay, receiver, sender);
  }
  return fmt::format(
      "{} waits for what {}, in the stead of {}, has sent: the network does not carry it. Look at the way between "
      "these two hosts, at the NIC that {} sends by, and whether the progress engine of rank {} hangs",
      receiver, relay, sender, relay, held.receiver);
}

std::string whomTheySendFor(const StallCase& stall, const std::set<int>& silent) {
  constexpr int kMostNamed = 2;
  std::string text;
  int told = 0;
  for (int sender = 0; sender < stall.nRanks && told < kMostNamed; ++sender) {
    const RankState* const state = stall.stateOf(sender);
    if (state == nullptr) continue;
    for (const RankState::Hold& hold : state->holds) {
      if (hold.receiver < 0 || hold.receiver >= stall.nRanks || !silent.contains(hold.relay)) continue;
      if (told++ == kMostNamed) break;
      text += fmt::format("; rank {} sends to {} in the stead of {}, which waits for that", hold.relay,
                          stall.describe(hold.receiver), sender == stall.self ? "this rank" : stall.describe(sender));
    }
  }
  return text;
}

}  // namespace tutti::comm
