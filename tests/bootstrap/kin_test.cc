// Communicators made from communicators, by the bootstrap alone.
#include "bootstrap/kin.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "bootstrap/loop/invitations.h"
#include "bootstrap/unique_id.h"
#include "local_ranks.h"
#include "support/until.h"

namespace tutti::bootstrap {
namespace {

using namespace test;

constexpr milliseconds kNoReport{0};

Relative relative(int number, int color, int key, int rank) {
  Relative one{number, color, key, 0, {}};
  one.entry.pid = rank + 100;
  return one;
}

std::unique_ptr<Bootstrap> joinChild(Kin kin) {
  JoinOptions options;
  options.settings = localSettings();
  auto joined = Bootstrap::join(options, std::move(kin));
  EXPECT_TRUE(joined.ok());
  return joined.ok() ? std::move(joined).value() : nullptr;
}

/// What each member says of itself, in order of the new ranks.
std::vector<int> gathered(Bootstrap& b, int mine) {
  std::vector<int> all(static_cast<std::size_t>(b.size()), -1);
  all[static_cast<std::size_t>(b.rank())] = mine;
  EXPECT_TRUE(allGatherValues(b, std::span(all)).ok());
  return all;
}

TEST(Kin, AreThoseOfOneColorByKeyAndThenByRank) {
  const std::vector<Relative> all{relative(1, 7, 5, 0), relative(1, 8, 0, 1), relative(1, 7, 5, 2),
                                  relative(1, 7, -3, 3), relative(1, NCCL_SPLIT_NOCOLOR, 0, 4)};
  const Kin kin = kinOf(all, 2, Key()).value();
  EXPECT_EQ(kin.origins, (std::vector<int>{3, 0, 2}));
  EXPECT_EQ(kin.rank, 2);
  EXPECT_EQ(kin.table[0].pid, 103);
  EXPECT_EQ(kinOf(all, 1, Key()).value().origins, std::vector<int>{1});
  EXPECT_EQ(kinOf(all, 0, Key()).value().key, kin.key);
  EXPECT_NE(kinOf(all, 1, Key()).value().key, kin.key) << "another color's";
}

TEST(Kin, OfLaterSplitsHaveOtherKeys) {
  const Kin first = kinOf(std::vector{relative(1, 0, 0, 0)}, 0, Key()).value();
  const Kin second = kinOf(std::vector{relative(2, 0, 0, 0)}, 0, Key()).value();
  EXPECT_NE(first.key, second.key);
  EXPECT_NE(first.commHash(), second.commHash());
}

TEST(Kin, WhoCountsOtherwiseIsNamed) {
  test::expectLog("makes split 1 of this communicator, rank 1 its split 2");
  EXPECT_EQ(kinOf(std::vector{relative(1, 0, 0, 0), relative(2, 0, 0, 1)}, 0, Key()).status().code(), ncclInvalidUsage);
}

TEST(Split, EveryColorIsACommunicatorInOrderOfItsKeys) {
  runJoined(13, 1, [](Bootstrap& parent) {
    // Three colors, keys backwards.
    Kin kin = parent.split(parent.rank() % 3, -parent.rank(), kNoReport).value();
    const auto child = joinChild(std::move(kin));
    ASSERT_NE(child, nullptr);
    std::vector<int> wanted;
    for (int rank = 12; rank >= 0; --rank) {
      if (rank % 3 == parent.rank() % 3) wanted.push_back(rank);
    }
    EXPECT_EQ(gathered(*child, parent.rank()), wanted);
    EXPECT_NE(child->commHash(), parent.commHash());
    EXPECT_NE(child->describe(0).find("host "), std::string::npos);
    ASSERT_TRUE(parent.barrier().ok());
  });
}

TEST(Split, WhoHasNoColorOnlyTakesPart) {
  runJoined(4, 1, [](Bootstrap& parent) {
    const int color = parent.rank() == 2 ? NCCL_SPLIT_NOCOLOR : 5;
    Kin kin = parent.split(color, 0, kNoReport).value();
    EXPECT_EQ(kin.member(), parent.rank() != 2);
    if (kin.member()) {
      EXPECT_EQ(gathered(*joinChild(std::move(kin)), parent.rank()), (std::vector<int>{0, 1, 3}));
    }
    ASSERT_TRUE(parent.barrier().ok());
  });
}

TEST(Split, ChildrenHaveChildrenAndOutliveTheirParents) {
  runJoined(8, 1, [](Bootstrap& first) {
    std::unique_ptr<Bootstrap> parent;
    Bootstrap* current = &first;
    for (int generation = 0; generation < 3; ++generation) {
      Kin kin = current->split(current->rank() % 2, 0, kNoReport).value();
      auto child = joinChild(std::move(kin));
      ASSERT_NE(child, nullptr);
      parent = std::move(child);  // the one before says goodbye, while others may still join their children
      current = parent.get();
      ASSERT_TRUE(current->barrier().ok());
    }
    EXPECT_EQ(current->size(), 1);
  });
}

TEST(Split, WhoDoesNotComeIsNamedByAllWhoWaitAndTheWaitCanBeAborted) {
  constexpr int kRanks = 12;
  constexpr int kLate = 9;  // below rank 1 or so: not everybody is its neighbour in the tree
  test::allowLog("waits in ncclCommSplit for rank 9");
  test::allowLog("aborted");
  const BootstrapSettings settings = localSettings(milliseconds(60'000));
  const auto ids = makeIds(1, settings);
  std::atomic<int> done{0};
  runRanks(kRanks, [&](int rank) {
    Abort abort;
    JoinOptions options = joinOptions(ids, rank, kRanks, settings);
    options.abort = &abort;
    auto joined = Bootstrap::join(options);
    ASSERT_TRUE(joined.ok());
    if (rank == kLate) {
      while (done < kRanks - 1) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    std::thread aborter([&] {
      std::this_thread::sleep_for(milliseconds(4000));
      abort.raise(Status(ncclInvalidUsage), "aborted by the test");
    });
    EXPECT_EQ(joined.value()->split(0, 0, milliseconds(300)).status().code(), ncclInvalidUsage);
    aborter.join();
    ++done;
    while (done < kRanks - 1) std::this_thread::sleep_for(milliseconds(1));
  });
  const std::string said = test::capturedText();
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string line = "Bootstrap: rank " + std::to_string(rank) + " (host";
    EXPECT_EQ(said.find(line) != std::string::npos, rank != kLate) << rank << "\n" << said;
  }
  EXPECT_EQ(said.find("for ranks"), std::string::npos) << "others were called late:\n" << said;
}

TEST(Split, WhoComesLateIsWaitedFor) {
  test::allowLog("waits in ncclCommSplit for rank 1");
  runJoined(3, 1, [](Bootstrap& parent) {
    if (parent.rank() == 1) std::this_thread::sleep_for(milliseconds(3000));
    Kin kin = parent.split(0, 0, milliseconds(100)).value();
    EXPECT_EQ(gathered(*joinChild(std::move(kin)), parent.rank()), (std::vector<int>{0, 1, 2}));
    ASSERT_TRUE(parent.barrier().ok());
  });
}

TEST(Split, TheTimeAllowedCountsAlsoWhereItIsOverBeforeTheReport) {
  test::allowLog("rank 1");
  const BootstrapSettings settings = localSettings(milliseconds(500));
  const auto ids = makeIds(1, settings);
  std::atomic<bool> over{false};
  runRanks(2, [&](int rank) {
    auto parent = Bootstrap::join(joinOptions(ids, rank, 2, settings)).value();
    if (rank == 1) {
      while (!over) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    const auto start = SteadyClock::now();
    EXPECT_EQ(parent->split(0, 0, milliseconds(30'000)).status().code(), ncclRemoteError);
    EXPECT_LT(secondsSince(start), 15.0);
    over = true;
  });
}

TEST(Split, ARankThatFailsMeanwhileIsNamedToTheOthers) {
  test::allowLog("rank 2");
  runJoined(5, 1, [](Bootstrap& parent) {
    if (parent.rank() == 2) {
      parent.announceFailure(Status(ncclSystemError), "it fell over");
      return;
    }
    EXPECT_FALSE(parent.split(0, 0, kNoReport).ok());
  });
  EXPECT_NE(test::capturedText().find("it fell over"), std::string::npos);
}

TEST(Survivors, MakeACommunicatorOfTheirOwn) {
  runJoined(9, 1, [](Bootstrap& parent) {
    const std::vector<int> survivors{1, 3, 4, 8};
    const Abort never;
    if (std::find(survivors.begin(), survivors.end(), parent.rank()) != survivors.end()) {
      for (int round = 0; round < 3; ++round) {
        auto kin = parent.shrink(survivors, never, kNoReport);
        ASSERT_TRUE(kin.ok());
        EXPECT_EQ(gathered(*joinChild(std::move(kin).value()), parent.rank()), survivors);
      }
    }
    ASSERT_TRUE(parent.barrier().ok()) << "of the parent nothing has changed";
  });
}

TEST(Survivors, OfTheSameListAreEachTimeAnotherCommunicator) {
  std::mutex mutex;
  std::set<std::uint64_t> hashes;
  runJoined(3, 1, [&](Bootstrap& parent) {
    const Abort never;
    for (int round = 0; round < 2 && parent.rank() != 1; ++round) {
      const Kin kin = parent.shrink(std::vector{0, 2}, never, kNoReport).value();
      const std::lock_guard lock(mutex);
      hashes.insert(kin.commHash());
    }
    ASSERT_TRUE(parent.barrier().ok());
  });
  EXPECT_EQ(hashes.size(), 2U);
}

TEST(Survivors, NeedNeitherATreeNorAHealthyParent) {
  constexpr int kRanks = 20;
  test::allowLog("rank");
  const BootstrapSettings settings = localSettings();
  const auto ids = makeIds(1, settings);
  std::atomic<int> gone{0};
  std::atomic<int> failed{0};
  runRanks(kRanks, [&](int rank) {
    Abort abort;
    JoinOptions options = joinOptions(ids, rank, kRanks, settings);
    options.abort = &abort;
    auto parent = Bootstrap::join(options).value();
    ASSERT_TRUE(parent->barrier().ok());
    if (rank % 2 == 0) {  // among them the inner ranks of the tree
      ++gone;
      while (failed < kRanks / 2) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    abort.raise(Status(ncclRemoteError), "aborted by the test");
    EXPECT_FALSE(parent->barrier().ok());
    ++failed;
    std::vector<int> survivors;
    for (int r = 1; r < kRanks; r += 2) survivors.push_back(r);
    const Abort never;
    auto kin = parent->shrink(survivors, never, kNoReport);
    ASSERT_TRUE(kin.ok());
    EXPECT_EQ(gathered(*joinChild(std::move(kin).value()), rank), survivors);
  });
}

TEST(Survivors, OneThatIsGoneIsNamedAtOnce) {
  test::allowLog("rank");
  const auto start = SteadyClock::now();
  std::atomic<bool> gone{false};
  runJoined(3, 1, [&](Bootstrap& parent) {
    ASSERT_TRUE(parent.barrier().ok());
    if (parent.rank() == 2) {
      parent.leave();
      gone = true;
      return;
    }
    while (!gone) std::this_thread::sleep_for(milliseconds(1));
    const Abort never;
    EXPECT_EQ(parent.shrink(std::vector{0, 1, 2}, never, kNoReport).status().code(), ncclRemoteError);
  });
  EXPECT_LT(secondsSince(start), 10.0);
  EXPECT_NE(test::capturedText().find("rank 2 (host"), std::string::npos);
}

TEST(Survivors, OneThatEndsMeanwhileEndsTheExchangeOfAll) {
  test::allowLog("rank");
  constexpr int kRanks = 14;
  const auto start = SteadyClock::now();
  std::atomic<int> over{0};
  runJoined(kRanks, 1, [&](Bootstrap& parent) {
    ASSERT_TRUE(parent.barrier().ok());
    if (parent.rank() == 13) {
      std::this_thread::sleep_for(milliseconds(300));  // all others are connected, and wait
      return parent.leave();
    }
    std::vector<int> survivors(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) survivors[static_cast<std::size_t>(rank)] = rank;
    const Abort never;
    EXPECT_EQ(parent.shrink(survivors, never, kNoReport).status().code(), ncclRemoteError) << parent.rank();
    ++over;
    while (over < kRanks - 1) std::this_thread::sleep_for(milliseconds(1));
  });
  EXPECT_LT(secondsSince(start), 10.0);
  EXPECT_NE(test::capturedText().find("rank 13 (host"), std::string::npos);
}

/// How many ranks have said that they wait in a shrink for `whom`.
int countWaiting(const std::string& whom) {
  const std::vector<std::string> lines = test::capturedLog();
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find("waits in ncclCommShrink for " + whom) != std::string::npos;
  }));
}

TEST(Survivors, WhoDoesNotComeIsNamedByAllWhoWaitAndWaitedFor) {
  constexpr int kRanks = 13;
  constexpr int kExcluded = 4;
  std::vector<int> survivors;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank != kExcluded) survivors.push_back(rank);
  }
  for (const int late : {1, 12}) {  // with others below it in the tree, and without
    const std::string whom = "rank " + std::to_string(late) + " (host ";
    test::allowLog("waits in ncclCommShrink for " + whom);
    runJoined(kRanks, 1, [&](Bootstrap& parent) {
      const Abort never;
      if (parent.rank() == late) {
        EXPECT_TRUE(test::until([&] { return countWaiting(whom) == kRanks - 2; })) << test::capturedText();
      }
      if (parent.rank() != kExcluded) {
        // One has more patience than the others, and speaks with them.
        const milliseconds patience(parent.rank() == 7 ? 60'000 : 300);
        auto kin = parent.shrink(survivors, never, patience);
        ASSERT_TRUE(kin.ok());
        EXPECT_EQ(gathered(*joinChild(std::move(kin).value()), parent.rank()), survivors);
      }
      ASSERT_TRUE(parent.barrier().ok());
    });
  }
}

TEST(Survivors, SeveralWhoDoNotComeAreNamedByThoseWhoBorderOnThem) {
  constexpr int kRanks = 9;
  test::allowLog("waits in ncclCommShrink for ranks 3 and 5");
  runJoined(kRanks, 1, [&](Bootstrap& parent) {
    const Abort never;
    std::vector<int> all(kRanks);
    std::iota(all.begin(), all.end(), 0);
    if (parent.rank() == 3 || parent.rank() == 5) {
      EXPECT_TRUE(test::until([&] { return countWaiting("ranks 3 and 5") == kRanks - 2; })) << test::capturedText();
    }
    ASSERT_TRUE(parent.shrink(all, never, milliseconds(300)).ok());
    ASSERT_TRUE(parent.barrier().ok());
  });
}

TEST(Survivors, AnAbortEndsTheWaitForOneThatDoesNotCome) {
  test::allowLog("rank");
  std::atomic<bool> over{false};
  runJoined(2, 1, [&](Bootstrap& parent) {
    if (parent.rank() == 1) {
      while (!over) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    Abort abort;
    std::thread aborter([&] {
      std::this_thread::sleep_for(milliseconds(100));
      abort.raise(Status(ncclInvalidUsage), "aborted by the test");
    });
    EXPECT_EQ(parent.shrink(std::vector{0, 1}, abort, kNoReport).status().code(), ncclInvalidUsage);
    aborter.join();
    over = true;
  });
}

TEST(Invitations, ReachEveryRankOnceAndEachIsUsedOnce) {
  test::expectLog("was used before");
  runJoined(11, 1, [](Bootstrap& b) {
    ncclUniqueId id{};
    id.internal[5] = 42;
    if (b.rank() == 3) b.invite(id);
    if (b.rank() != 3) {
      const Abort never;
      const auto told = b.invitations()->take(Deadline::in(std::chrono::seconds(20)), never);
      ASSERT_TRUE(told.ok());
      EXPECT_EQ(std::memcmp(&told.value(), &id, sizeof(id)), 0);
    } else {
      EXPECT_TRUE(b.invitations()->use(id).ok());
      EXPECT_EQ(b.invitations()->use(id).code(), ncclInvalidArgument);
    }
    ASSERT_TRUE(b.barrier().ok());
  });
}

TEST(Invitations, WhoWasToldOtherwiseIsNotToldAgain) {
  Invitations all;
  ncclUniqueId first{};
  ncclUniqueId second{};
  second.internal[0] = 1;
  ASSERT_TRUE(all.use(first).ok());
  all.add(first);
  all.add(second);
  const Abort never;
  EXPECT_EQ(all.take(Deadline::in(std::chrono::seconds(20)), never).value().internal[0], 1);
}

TEST(Invitations, NobodyWaitsBeyondTheEndOfTheCommunicator) {
  test::expectLog("it was destroyed");
  Invitations all;
  std::thread closer([&] { all.close(Status(ncclInvalidUsage), "it was destroyed"); });
  const Abort never;
  EXPECT_EQ(all.take(Deadline::in(std::chrono::seconds(20)), never).status().code(), ncclInvalidUsage);
  closer.join();
}

}  // namespace
}  // namespace tutti::bootstrap
