// Ranks that have left the tree in the middle, and others that go on.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "bootstrap/loop/tree.h"
#include "children.h"
#include "local_ranks.h"

namespace tutti::bootstrap {
namespace {

constexpr std::chrono::seconds kLimit{20};

TEST(LivingParent, IsTheNearestAboveThatIsThere) {
  const int parent = treePlace(100, 1, 60).parent;
  ASSERT_GT(parent, 0);
  EXPECT_EQ(livingParent(100, 1, 60, {}), parent);
  EXPECT_EQ(livingParent(100, 1, 60, {parent}), treePlace(100, 1, parent).parent);
}

TEST(LivingParent, IsTheLowestOfAllWhereNobodyAboveIsLeft) {
  EXPECT_EQ(livingParent(9, 1, 5, {0}), 1);
  EXPECT_EQ(livingParent(9, 1, 5, {0, 1, 2}), 3);
  EXPECT_EQ(livingParent(9, 1, 3, {0, 1, 2}), -1);
  EXPECT_EQ(livingParent(9, 1, 0, {}), -1);
}

TEST(LivingParent, IsAlwaysLowerSoThatThereAreNoCircles) {
  const std::set<int> left = {0, 1, 7, 13, 20, 21, 22, 90};
  for (const int nRoots : {1, 7}) {
    for (int rank = 0; rank < 100; ++rank) {
      const int parent = livingParent(100, nRoots, rank, left);
      EXPECT_LT(parent, rank);
      EXPECT_FALSE(left.contains(parent));
    }
  }
}

/// Ranks as objects of one thread, with what they have heard.
class Ranks {
 public:
  explicit Ranks(int size, milliseconds peerTimeout = milliseconds(5000)) : size_(size) {
    settings_ = test::localSettings();
    settings_.peerTimeout = peerTimeout;
    ids_ = test::makeIds(1, settings_);
    members_.resize(static_cast<std::size_t>(size));
  }

  /// All but `elsewhere`, which is a process of its own that says something ten times a second; its number, or -1.
  pid_t join(int elsewhere = -1) {
    const pid_t child = elsewhere < 0 ? -1 : ::fork();
    if (child == 0) {
      auto joined = Bootstrap::join(test::joinOptions(ids_, elsewhere, size_, settings_));
      if (!joined.ok()) ::_exit(1);
      const std::byte word{43};
      while (true) {
        joined.value()->announceState({&word, 1});
        std::this_thread::sleep_for(milliseconds(100));
      }
    }
    std::vector<int> here;
    for (int rank = 0; rank < size_; ++rank)
      if (rank != elsewhere) here.push_back(rank);
    test::runRanks(static_cast<int>(here.size()), [&](int i) { joinOne(here[static_cast<std::size_t>(i)]); });
    // Until it has joined as well: the root calls a rank lost that falls silent before.
    if (child > 0) {
      EXPECT_TRUE(hears(here.back(), elsewhere));
    }
    return child;
  }

  Bootstrap& at(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  void leave(int rank) { members_[static_cast<std::size_t>(rank)].reset(); }

  /// Says something on one rank until all `others` have heard it, which is when the tree is whole.
  bool reachesAll(int from, const std::set<int>& others) {
    const Deadline limit = Deadline::in(kLimit);
    const std::byte word{42};
    {
      const std::lock_guard lock(mutex_);
      for (auto& [rank, speakers] : heard_) speakers.erase(from);
    }
    while (!limit.expired()) {
      at(from).announceState({&word, 1});
      std::this_thread::sleep_for(milliseconds(20));
      const std::lock_guard lock(mutex_);
      bool all = true;
      for (const int other : others) all = all && heard_[other].contains(from);
      if (all) return true;
    }
    return false;
  }

  /// Whether a rank hears another one from now on, which speaks of itself.
  bool hears(int rank, int from) {
    const Deadline limit = Deadline::in(kLimit);
    std::unique_lock lock(mutex_);
    heard_[rank].erase(from);
    while (!limit.expired() && !heard_[rank].contains(from)) {
      lock.unlock();
      std::this_thread::sleep_for(milliseconds(10));
      lock.lock();
    }
    return heard_[rank].contains(from);
  }

  /// Whom a rank was told to be lost; -1 if nobody in time.
  int awaitLost(int rank) {
    const Deadline limit = Deadline::in(kLimit);
    while (!limit.expired()) {
      {
        const std::lock_guard lock(mutex_);
        if (lost_.contains(rank)) return lost_.at(rank).rank;
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    return -1;
  }

  /// Success where nobody was told that a rank is lost.
  testing::AssertionResult undisturbed() {
    const std::lock_guard lock(mutex_);
    if (lost_.empty()) return testing::AssertionSuccess();
    testing::AssertionResult disturbed = testing::AssertionFailure();
    for (const auto& [rank, lost] : lost_) disturbed << "rank " << rank << " was told: " << lost.text << "; ";
    return disturbed;
  }

 private:
  void joinOne(int rank) {
    JoinOptions options = test::joinOptions(ids_, rank, size_, settings_);
    options.onPeerLost = [this, rank](const PeerLost& lost) {
      const std::lock_guard lock(mutex_);
      lost_.emplace(rank, lost);
    };
    options.onState = [this, rank](int from, std::span<const std::byte>) {
      const std::lock_guard lock(mutex_);
      heard_[rank].insert(from);
    };
    auto joined = Bootstrap::join(options);
    ASSERT_TRUE(joined.ok());
    members_[static_cast<std::size_t>(rank)] = std::move(joined).value();
  }

  int size_;
  BootstrapSettings settings_;
  std::vector<ncclUniqueId> ids_;
  std::mutex mutex_;
  std::map<int, PeerLost> lost_;
  std::map<int, std::set<int>> heard_;
  std::vector<std::unique_ptr<Bootstrap>> members_;
};

void bury(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(TreeRepair, WordsReachAllOthersAgainOnceTheFirstRankHasLeft) {
  Ranks ranks(5);
  ranks.join();
  ranks.leave(0);
  EXPECT_TRUE(ranks.reachesAll(4, {1, 2, 3}));
  EXPECT_TRUE(ranks.reachesAll(1, {2, 3, 4}));
  EXPECT_TRUE(ranks.undisturbed());
}

TEST(TreeRepair, OneAfterTheOtherMayLeave) {
  constexpr int kRanks = 24;
  Ranks ranks(kRanks);
  ranks.join();
  std::set<int> others;
  for (int rank = 0; rank < kRanks; ++rank) others.insert(rank);
  // The top, the next top, and ranks with others below them.
  for (const int gone : {0, 1, 4, 7, 2, 10, 3}) {
    others.erase(gone);
    ranks.leave(gone);
    std::set<int> hearers = others;
    const int speaker = *others.rbegin();
    hearers.erase(speaker);
    EXPECT_TRUE(ranks.reachesAll(speaker, hearers)) << "after rank " << gone;
  }
  for (const int rank : others) EXPECT_TRUE(ranks.at(rank).hasLeft(10)) << rank;
  EXPECT_TRUE(ranks.undisturbed());
}

TEST(TreeRepair, SeveralMayLeaveAtOnce) {
  Ranks ranks(24);
  ranks.join();
  std::vector<std::jthread> leaving;
  for (const int gone : {0, 1, 4, 7, 10, 13}) leaving.emplace_back([&ranks, gone] { ranks.leave(gone); });
  leaving.clear();
  EXPECT_TRUE(ranks.reachesAll(23, {2, 3, 5, 8, 11, 14, 20}));
  EXPECT_TRUE(ranks.reachesAll(2, {3, 5, 8, 11, 14, 20, 23}));
  EXPECT_TRUE(ranks.undisturbed());
}

TEST(TreeRepair, ADeathIsToldWhereTheFirstRankHasLeft) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer cannot follow fork() with threads";
  test::allowLog("rank 3");
  Ranks ranks(5);
  const pid_t child = ranks.join(3);
  ranks.leave(0);
  ASSERT_TRUE(ranks.reachesAll(4, {1, 2}));
  ASSERT_TRUE(ranks.hears(4, 3));  // which nobody would miss that has not found a place in the tree again
  bury(child);
  for (const int rank : {1, 2, 4}) EXPECT_EQ(ranks.awaitLost(rank), 3) << rank;
}

TEST(TreeRepair, AStoppedRankIsToldThatWasToFindAnotherParent) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer cannot follow fork() with threads";
  test::allowLog("rank 3");
  Ranks ranks(5, milliseconds(1500));
  const pid_t child = ranks.join(3);
  ::kill(child, SIGSTOP);
  ranks.leave(0);
  for (const int rank : {1, 2, 4}) EXPECT_EQ(ranks.awaitLost(rank), 3) << rank;
  bury(child);
}

TEST(TreeRepair, AStoppedRankIsToldThatWasToBeTheNextParent) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer cannot follow fork() with threads";
  test::allowLog("rank 1");
  Ranks ranks(4, milliseconds(1500));
  const pid_t child = ranks.join(1);
  ::kill(child, SIGSTOP);
  ranks.leave(0);
  for (const int rank : {2, 3}) EXPECT_EQ(ranks.awaitLost(rank), 1) << rank;
  bury(child);
}

TEST(TreeRepair, WhereNobodyWaitsAStoppedRankComesBack) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer cannot follow fork() with threads";
  // So long that a busy machine keeps nobody from its turn for all of it; twice that is time enough to be called dead.
  constexpr milliseconds kPeerTimeout{2000};
  Ranks ranks(4, kPeerTimeout);
  const pid_t child = ranks.join(1);
  for (const int rank : {0, 2, 3}) ranks.at(rank).endWait();
  ::kill(child, SIGSTOP);
  ranks.leave(0);
  std::this_thread::sleep_for(2 * kPeerTimeout);
  EXPECT_TRUE(ranks.undisturbed());
  ::kill(child, SIGCONT);
  EXPECT_TRUE(ranks.hears(2, 1));
  EXPECT_TRUE(ranks.reachesAll(3, {2}));
  ranks.at(2).beginWait();
  std::this_thread::sleep_for(2 * kPeerTimeout);
  EXPECT_TRUE(ranks.undisturbed()) << "it is heard again";
  ::kill(child, SIGKILL);
  for (const int rank : {2, 3}) EXPECT_EQ(ranks.awaitLost(rank), 1) << rank;
  ::waitpid(child, nullptr, 0);
}

TEST(TreeRepair, HoldsUpNobodyWhoLeaves) {
  constexpr int kRanks = 8;
  Ranks ranks(kRanks);
  ranks.join();
  const auto start = SteadyClock::now();
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.leave(rank);
    std::this_thread::sleep_for(milliseconds(310));  // others have begun to look for parents
  }
  EXPECT_LT(secondsSince(start), kRanks * 0.31 + 10);
  EXPECT_TRUE(ranks.undisturbed());
}

}  // namespace
}  // namespace tutti::bootstrap
