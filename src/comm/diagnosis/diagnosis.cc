#include "comm/diagnosis/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "comm/diagnosis/blocked_by.h"

namespace tutti::comm {

namespace {

/// Ranks that are named one by one; of more, only how many.
constexpr std::size_t kMostNamed = 4;

std::string listed(const StallCase& stall, const std::vector<int>& ranks) {
  std::string text;
  const std::size_t named = std::min(ranks.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == named && named == ranks.size() ? " and " : ", ";
    text += stall.describe(ranks[i]);
  }
  if (named < ranks.size()) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

std::vector<int> pathToTop(const StallCase& stall, int rank) {
  std::vector<int> path;
  for (; rank >= 0 && path.size() <= static_cast<std::size_t>(stall.nRanks); rank = stall.parent(rank)) {
    path.push_back(rank);
  }
  return path;
}

/// The ranks through which this one asks another, itself first and that one last.
std::vector<int> pathTo(const StallCase& stall, int other) {
  const std::vector<int> theirs = pathToTop(stall, other);
  std::vector<int> path;
  for (const int rank : pathToTop(stall, stall.self)) {
    path.push_back(rank);
    const auto joint = std::find(theirs.begin(), theirs.end(), rank);
    if (joint == theirs.end()) continue;
    path.insert(path.end(), std::make_reverse_iterator(joint), theirs.rend());
    break;
  }
  return path;
}

/// Of the ranks between this one and a silent one, that one included, the nearest silent one: answers do not get past.
int silencer(const StallCase& stall, int silent) {
  for (const int rank : pathTo(stall, silent)) {
    if (stall.stateOf(rank) == nullptr) return rank;
  }
  return silent;
}

std::string silenceOf(const StallCase& stall) {
  std::set<int> culprits;
  std::size_t silent = 0;
  for (int rank = 0; rank < stall.nRanks; ++rank) {
    if (stall.stateOf(rank) != nullptr || stall.gone(rank)) continue;
    const int culprit = silencer(stall, rank);
    if (stall.gone(culprit)) continue;  // then nothing can be known of it
    ++silent;
    culprits.insert(culprit);
  }
  if (silent == 0) return {};
  const std::vector<int> ranks(culprits.begin(), culprits.end());
  const bool one = ranks.size() == 1;
  std::string text =
      fmt::format("{} {} not answer: {} stopped or {} not reachable", listed(stall, ranks), one ? "does" : "do",
                  one ? "its process is" : "their processes are", one ? "its host is" : "their hosts are");
  if (silent > ranks.size())
    text += fmt::format(" ({} more ranks are asked through {})", silent - ranks.size(), one ? "it" : "them");
  return text + whomTheySendFor(stall, culprits);
}

std::string doingOf(const RankState& state) {
  const double seconds = state.forMs / 1000.0;
  switch (state.doing) {
    case RankDoing::Idle:
      return "has nothing under way";
    case RankDoing::Connecting:
      return fmt::format("has waited for {:.1f} s in a call of {} for others to be connected with", seconds,
                         operationOf(state));
    case RankDoing::Running:
    case RankDoing::Stalled:
      return fmt::format("has been in {} for {:.1f} s", operationOf(state), seconds);
    case RankDoing::Deaf:
      return fmt::format("has been in {} for {:.1f} s, and its device does not answer", operationOf(state), seconds);
  }
  return {};
}

/// Collectives are called by all ranks in one order: who has called fewer is late.
std::vector<int> lateRanks(const StallCase& stall) {
  std::vector<int> late;
  if (stall.own.replays != 0 || (stall.own.message != 0 && stall.own.doing != RankDoing::Connecting)) return late;
  std::uint64_t least = stall.own.collectives;
  for (const auto& [rank, state] : stall.answers) {
    if (state.collectives > least || state.collectives == stall.own.collectives || stall.gone(rank)) continue;
    if (state.collectives < least) late.clear();
    least = state.collectives;
    late.push_back(rank);
  }
  return late;
}

std::string lateText(const StallCase& stall, const std::vector<int>& late) {
  const std::uint64_t own = stall.own.collectives;
  const std::uint64_t least = stall.stateOf(late.front())->collectives;
  const bool one = late.size() == 1;
  const std::optional<Call> missed = stall.callOf ? stall.callOf(least + 1) : std::nullopt;
  const std::string name = missed ? std::string(apiFuncName(missed->func)) : operationOf(stall.own);
  const std::string ours =
      own == least + 1 ? fmt::format("this one is the {}", ordinal(own)) : fmt::format("this rank {}", own);
  std::string text =
      fmt::format("{} {} launched {} collective operation{}, {}: {} not called {} yet", listed(stall, late),
                  one ? "has" : "have", least, least == 1 ? "" : "s", ours, one ? "it has" : "they have", name);
  if (missed) text += fmt::format(" ({})", describeCall(*missed));
  const RankState& first = *stall.stateOf(late.front());
  if (first.doing != RankDoing::Idle) text += fmt::format(" ({}{})", one ? "it " : "the first one ", doingOf(first));
  return text;
}

/// Whether what it waits for is the network in which a collective runs.
bool isInNetwork(const RankState& state, int rank) {
  return std::any_of(state.holds.begin(), state.holds.end(), [rank](const RankState::Hold& hold) {
    return hold.receiver == rank && hold.blockedBy == proxy::BlockedBy::Network;
  });
}

/// For whom one waits that waits for this network: for a rank that is in the operation as well, waits for nobody, and
/// has not given its part to the network, if there is one; else for the network itself, which `rank` stands for.
int behindNetwork(const StallCase& stall, int rank) {
  for (const auto& [other, state] : stall.answers) {
    const bool inOperation = state.doing == RankDoing::Running || state.doing == RankDoing::Stalled;
    if (inOperation && state.waitsFor.front() < 0 && !isInNetwork(state, other) && !stall.gone(other)) return other;
  }
  return rank;
}

/// Follows who waits for whom from this rank on, to somebody who waits for nobody.
class Chain {
 public:
  explicit Chain(const StallCase& stall) : stall_(stall) {}
  /// That rank; -1: none, they wait in a circle.
  int end(int rank) {
    if (!seen_.insert(rank).second) return -1;
    if (stall_.gone(rank) || stall_.moves(rank)) return rank;
    const RankState* const state = stall_.stateOf(rank);
    // Who waits for the network looks as if it waited for its neighbours, too.
    if (state != nullptr && isInNetwork(*state, rank)) return behindNetwork(stall_, rank);
    if (state == nullptr || state->waitsFor.front() < 0) return rank;
    const auto follow = [&](bool left) {
      for (const int next : state->waitsFor) {
        if (next < 0 || next >= stall_.nRanks || stall_.gone(next) != left) continue;
        if (const int found = end(next); found >= 0) return found;
      }
      return -1;
    };
    // Who has left is likely to have done its part.
    const int present = follow(false);
    return present >= 0 ? present : follow(true);
  }
  std::vector<int> members() const { return {seen_.begin(), seen_.end()}; }

 private:
  const StallCase& stall_;
  std::set<int> seen_;
};

std::string endOfChain(const StallCase& stall, int rank) {
  const std::string who = rank == stall.self ? "this rank" : stall.describe(rank);
  if (stall.gone(rank)) {
    return fmt::format(
        "{} has left the communicator: it has not called what is waited for, or was given other arguments", who);
  }
  if (stall.stateOf(rank) == nullptr) {
    return fmt::format("{} cannot be asked: a rank through which it is asked has left the communicator", who);
  }
  const RankState& state = *stall.stateOf(rank);
  if (stall.moves(rank)) return fmt::format("{} {}, and moves", who, doingOf(state));
  switch (state.doing) {
    case RankDoing::Idle:
      if (stall.own.message != 0) {
        return fmt::format("{} has nothing under way after {} operation{}: it has not called the matching Send or Recv",
                           who, state.launched, state.launched == 1 ? "" : "s");
      }
      return fmt::format("{} has nothing under way: it is done with its part, or was given other arguments", who);
    case RankDoing::Connecting:
      return fmt::format("{} {}", who, doingOf(state));
    case RankDoing::Running:
    case RankDoing::Stalled:
      if (isInNetwork(state, rank)) {
        return fmt::format(
            "all ranks are in an operation; {} waits for the network in which it runs (CollNet), which has not "
            "finished a call that all its nodes make. Look at what its plugin and its switches say, and at the way of "
            "each node's head to them; NCCL_COLLNET_ENABLE=0 does without it",
            who);
      }
      return fmt::format(
          "all ranks are in an operation; {} waits for nobody: its device is stuck or stopped, or busy "
          "with other work",
          who);
    case RankDoing::Deaf:
      return fmt::format("{} {}: it is stuck or stopped", who, doingOf(state));
  }
  return {};
}

}  // namespace

const RankState* StallCase::stateOf(int rank) const {
  if (rank == self) return &own;
  const auto found = answers.find(rank);
  return found == answers.end() ? nullptr : &found->second;
}

bool StallCase::gone(int rank) const {
  return rank != self && hasLeft && hasLeft(rank);
}

bool StallCase::moves(int rank) const {
  if (rank == self) return false;
  const RankState* const state = stateOf(rank);
  const milliseconds lately = 2 * limit + milliseconds(3000);
  return state != nullptr && limit > milliseconds(0) && state->doing == RankDoing::Running &&
         milliseconds(state->forMs) < lately;
}

Diagnosis judgeStall(const StallCase& stall) {
  if (std::string text = silenceOf(stall); !text.empty()) return {std::move(text)};
  if (const auto held = heldMessage(stall)) return {describeHeld(stall, *held)};
  if (const std::vector<int> late = lateRanks(stall); !late.empty()) {
    return {lateText(stall, late), std::any_of(late.begin(), late.end(), [&](int rank) { return stall.moves(rank); })};
  }
  for (const auto& [rank, state] : stall.answers) {
    if (state.doing == RankDoing::Deaf && !stall.gone(rank)) return {endOfChain(stall, rank)};
  }
  Chain chain(stall);
  if (const int rank = chain.end(stall.self); rank >= 0) return {endOfChain(stall, rank), stall.moves(rank)};
  return {
      fmt::format("{} wait for each other in a circle: do all ranks make the same calls in the same order, and has "
                  "each Send its Recv?",
                  listed(stall, chain.members()))};
}

}  // namespace tutti::comm
