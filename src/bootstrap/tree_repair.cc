#include "bootstrap/tree_repair.h"

#include <utility>

#include "base/log.h"
#include "base/threads/shortage.h"
#include "bootstrap/joiner.h"
#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/tree.h"

namespace tutti::bootstrap {
namespace {

/// Ranks that are to call need so long at most, unless something is wrong with them.
constexpr milliseconds kCalls{1000};
/// Both sides may have called at the same moment.
constexpr milliseconds kAgain{200};
/// Between rounds of ranks that do not answer: one that comes back is found within the grace that who begins to wait
/// gives it (ConnectionLoop::endOfSilence).
constexpr milliseconds kAllSilent{300};
/// A rank listens as long as it is a member.
constexpr milliseconds kRefusals{500};

}  // namespace

TreeRepair::TreeRepair(const Joined& joined, int nRoots) : joined_(joined), nRoots_(nRoots) {}

void TreeRepair::begin() {
  const std::lock_guard lock(mutex_);
  if (stop_.raised()) return;
  needed_ = true;
  changed_.notify_all();
  if (thread_.running()) return;
  auto thread = Thread::start("tutti tree", [this] { throughShortages([this] { run(); }); });
  if (thread.ok()) thread_ = std::move(thread).value();
}

void TreeRepair::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.raise(Status(ncclInvalidUsage), "the rank leaves");
    changed_.notify_all();
  }
  thread_.join();
}

void TreeRepair::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return needed_ || stop_.raised(); });
      if (stop_.raised()) return;
      needed_ = false;
    }
    mend();
  }
}

bool TreeRepair::over() const {
  return stop_.raised() || !joined_.loop->failure().ok() || !joined_.loop->aborted().ok();
}

bool TreeRepair::rest(milliseconds span) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, span, [this] { return stop_.raised(); });
  lock.unlock();
  return !over();
}

void TreeRepair::mend() {
  findParent();
  if (over() || missingChildren().empty() || !rest(kCalls)) return;
  callChildren();
}

Dialed TreeRepair::call(int peer) const {
  ConnectionLoop& loop = *joined_.loop;
  DialLimits limits;
  limits.deadline = limits.listening = Deadline::in(joined_.peerTimeout);
  limits.answer = joined_.peerTimeout;
  limits.refusals = kRefusals;
  limits.abort = &stop_;
  limits.stop = [this, &loop, peer] { return over() || loop.hasLeft(peer) ? Status(ncclInvalidUsage) : Status(); };
  return dial({loop.addressOf(peer), joined_.key, Purpose::Adopt, joined_.rank, peer, kMaxRankFrame}, limits);
}

void TreeRepair::findParent() {
  ConnectionLoop& loop = *joined_.loop;
  std::set<int> silent;
  while (!over() && !loop.hasParent()) {
    std::set<int> without = loop.leftRanks();
    without.insert(gone_.begin(), gone_.end());
    without.insert(silent.begin(), silent.end());
    const int parent = livingParent(joined_.nRanks, nRoots_, joined_.rank, without);
    if (parent < 0) {
      if (silent.empty()) return;  // this rank is the first of all
      if (!rest(kAllSilent)) return;
      silent.clear();  // they may have come back
      continue;
    }
    Dialed dialed = call(parent);
    if (dialed.kind == Dialed::Kind::Open) {
      loop.addAdopted(std::move(dialed.link), parent);
      info(kBootstrap, "Bootstrap: rank {} goes on below {}, for ranks between them have left", joined_.rank,
           loop.describe(parent));
      if (!rest(kAgain)) return;
    } else if (dialed.kind == Dialed::Kind::Silent) {
      loop.suspectSilence(parent, dialed.waited);
      silent.insert(parent);
    } else if (dialed.kind == Dialed::Kind::OwnTrouble || dialed.kind == Dialed::Kind::TurnedAway) {
      if (!rest(kAgain)) return;
    } else if (dialed.kind != Dialed::Kind::Stopped) {
      gone_.insert(parent);
    }
  }
}

std::set<int> TreeRepair::missingChildren() const {
  const ConnectionLoop& loop = *joined_.loop;
  const std::set<int> left = loop.leftRanks();
  std::set<int> missing;
  for (int rank = joined_.rank + 1; rank < joined_.nRanks; ++rank) {
    if (left.contains(rank) || gone_.contains(rank) || loop.isLinked(rank)) continue;
    if (livingParent(joined_.nRanks, nRoots_, rank, left) == joined_.rank) missing.insert(rank);
  }
  return missing;
}

void TreeRepair::callChildren() {
  ConnectionLoop& loop = *joined_.loop;
  for (const int child : missingChildren()) {
    if (over()) return;
    if (loop.isLinked(child)) continue;
    Dialed dialed = call(child);
    if (dialed.kind == Dialed::Kind::Open) loop.addAdopted(std::move(dialed.link), child);
    if (dialed.kind == Dialed::Kind::Silent) loop.suspectSilence(child, dialed.waited);
    if (dialed.kind == Dialed::Kind::NobodyListens) gone_.insert(child);
  }
}

}  // namespace tutti::bootstrap
