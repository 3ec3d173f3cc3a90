// What happens when ranks disagree, come late, die, abort or leave.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "base/fd.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "children.h"
#include "failing_ranks.h"

namespace tutti::bootstrap {
namespace {

using namespace test;

/// For those who first have to join, on a machine that may be busy.
constexpr milliseconds kTimeToJoin{2500};

#ifdef __SANITIZE_THREAD__
constexpr bool kCanTakeDescriptorsAway = false;
#else
constexpr bool kCanTakeDescriptorsAway = true;
#endif

/// Waits, as long as a test may, until a receive would not wait any more.
void awaitArrival(Bootstrap& bootstrap, int peer, int tag) {
  const Deadline limit = Deadline::in(std::chrono::seconds(20));
  while (!bootstrap.arrived(peer, tag) && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
}

TEST(BootstrapFailure, APeerMayBeLateToWhoeverAsksForArrivals) {
  const auto settings = test::localSettings(kTimeToJoin);
  const auto ids = test::makeIds(1, settings);
  test::runRanks(2, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
    ASSERT_TRUE(joined.ok());
    int word = 5;
    if (rank == 1) {
      std::this_thread::sleep_for(kTimeToJoin + milliseconds(150));
      EXPECT_TRUE(joined.value()->send(0, 9, std::as_bytes(std::span(&word, 1))).ok());
    } else {
      EXPECT_FALSE(joined.value()->arrived(1, 9));
      awaitArrival(*joined.value(), 1, 9);
      EXPECT_FALSE(joined.value()->arrived(1, 8)) << "another tag";
      EXPECT_TRUE(joined.value()->recv(1, 9, std::as_writable_bytes(std::span(&word, 1))).ok());
      EXPECT_EQ(word, 5);
      EXPECT_FALSE(joined.value()->arrived(1, 9)) << "taken";
    }
    EXPECT_TRUE(joined.value()->barrier().ok());
  });
}

TEST(BootstrapFailure, WaitingForALatePeerEndsWithItsLife) {
  test::allowLog("rank 1");
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  test::runRanks(2, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
    ASSERT_TRUE(joined.ok());
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(20));
      joined.value()->abort(Status(ncclInvalidUsage));
      return;
    }
    int word = 0;
    awaitArrival(*joined.value(), 1, 9);
    ASSERT_TRUE(joined.value()->arrived(1, 9));
    EXPECT_EQ(joined.value()->recv(1, 9, std::as_writable_bytes(std::span(&word, 1))).code(), ncclRemoteError);
  });
}

TEST(BootstrapFailure, DuplicateRankIsToldToAll) {
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  expectAllFail({test::joinOptions(ids, 1, 3, settings), test::joinOptions(ids, 1, 3, settings),
                 test::joinOptions(ids, 2, 3, settings)},
                ncclInvalidUsage, "duplicate rank");
}

TEST(BootstrapFailure, DifferentNumbersOfRanksAreToldToAll) {
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  expectAllFail({test::joinOptions(ids, 0, 2, settings), test::joinOptions(ids, 1, 3, settings)}, ncclInvalidUsage,
                "mismatched number of ranks");
}

TEST(BootstrapFailure, DifferentVersionsAreToldToAll) {
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  JoinOptions old = test::joinOptions(ids, 1, 2, settings);
  old.version = 22809;
  expectAllFail({test::joinOptions(ids, 0, 2, settings), old}, ncclInvalidUsage, "mismatched library versions");
}

TEST(BootstrapFailure, WeakCommKeyIsRefused) {
  auto settings = test::localSettings(kShort);
  settings.commId = "127.0.0.1:1";
  const auto ids = test::makeIds(1, settings);
  settings.commKey = "password";
  expectAllFail({test::joinOptions(ids, 0, 2, settings)}, ncclInvalidUsage, "TUTTI_COMM_KEY has 8 characters");
}

TEST(BootstrapFailure, AbortEndsAJoinThatWaits) {
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  Abort abort;
  JoinOptions options = test::joinOptions(ids, 0, 2, settings);
  options.abort = &abort;
  std::thread raiser([&] {
    std::this_thread::sleep_for(milliseconds(100));
    abort.raise(Status(ncclInternalError), "the user gave up");
  });
  EXPECT_EQ(Bootstrap::join(options).status().code(), ncclInternalError);
  raiser.join();
}

TEST(BootstrapFailure, AbortEndsEveryKindOfWaitAndPeersHearOfIt) {
  test::allowLog("aborted its communicator");
  for (int kind = 0; kind < 3; ++kind) {
    test::runJoined(2, 1, [kind](Bootstrap& b) {
      if (b.rank() == 1) {
        EXPECT_EQ(b.barrier().code(), ncclRemoteError);
        return;
      }
      std::thread raiser([&] {
        std::this_thread::sleep_for(milliseconds(50));
        b.abort(Status(ncclSystemError));
      });
      std::byte blocks[2] = {};
      const Status status = kind == 0 ? b.recv(1, 0, blocks) : kind == 1 ? b.recv(0, 5, blocks) : b.recv(1, 9, {});
      raiser.join();
      EXPECT_EQ(status.code(), ncclSystemError);
      EXPECT_EQ(b.barrier().code(), ncclSystemError) << "later calls too";
    });
  }
}

TEST(BootstrapFailure, WaitInVainNamesWhom) {
  test::allowLog("waited in vain for a message with tag 3 from rank 1");
  const auto settings = test::localSettings(kTimeToJoin);
  const auto ids = test::makeIds(1, settings);
  test::runRanks(2, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
    ASSERT_TRUE(joined.ok());
    std::byte byte{};
    if (rank == 0) {
      EXPECT_EQ(joined.value()->recv(1, 3, std::span(&byte, 1)).code(), ncclRemoteError);
    } else {
      std::this_thread::sleep_for(kTimeToJoin * 2);
    }
  });
}

TEST(BootstrapFailure, AnnouncedFailureReachesAll) {
  test::allowLog("the disk is full");
  std::atomic<int> joinedRanks{0};
  test::runJoined(12, 1, [&](Bootstrap& b) {
    ++joinedRanks;
    if (b.rank() == 11) {
      // Before everybody has joined, the failure would rightly end the join of the others.
      while (joinedRanks < 12) std::this_thread::sleep_for(milliseconds(1));
      b.announceFailure(Status(ncclSystemError), "rank 11: the disk is full");
    } else {
      EXPECT_EQ(b.barrier().code(), ncclSystemError);
    }
  });
}

TEST(BootstrapFailure, SendingAfterAFailureSaysWhatFailed) {
  const auto settings = test::localSettings(milliseconds(10000));
  const auto ids = test::makeIds(1, settings);
  test::allowLog("the disk of rank 1 is full");
  test::allowLog("something else");
  test::runRanks(2, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
    ASSERT_TRUE(joined.ok());
    Bootstrap& bootstrap = *joined.value();
    if (rank == 1) return bootstrap.announceFailure(Status(ncclSystemError), "the disk of rank 1 is full");
    const Deadline limit = Deadline::in(std::chrono::seconds(20));
    while (bootstrap.lost().ok() && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
    warn("something else");
    const int word = 5;
    EXPECT_EQ(bootstrap.send(1, 9, std::as_bytes(std::span(&word, 1))).code(), ncclSystemError);
    EXPECT_NE(std::string(lastErrorText()).find("the disk of rank 1 is full"), std::string::npos) << lastErrorText();
  });
}

TEST(BootstrapFailure, GoodbyeIsNoFailure) {
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  test::runRanks(10, [&](int rank) {
    JoinOptions options = test::joinOptions(ids, rank, 10, settings);
    options.onPeerLost = [](const PeerLost& lost) { ADD_FAILURE() << lost.text; };
    auto joined = Bootstrap::join(options);
    ASSERT_TRUE(joined.ok());
    ASSERT_TRUE(joined.value()->barrier().ok());
    if (rank % 2 == 0) joined.value()->leave();
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(joined.value()->lost().ok());
  });
}

TEST(BootstrapFailure, KilledProcessIsNamedToAllSurvivorsWithinASecond) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("died or lost its network");
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  const pid_t child = ::fork();
  if (child == 0) {
    auto joined = Bootstrap::join(test::joinOptions(ids, 5, 12, settings));
    ::pause();
    ::_exit(joined.ok() ? 0 : 1);
  }
  std::atomic<int> told{0};
  std::atomic<int> joinedRanks{0};
  test::runRanks(11, [&](int i) {
    const int rank = i < 5 ? i : i + 1;
    JoinOptions options = test::joinOptions(ids, rank, 12, settings);
    options.onPeerLost = [&](const PeerLost& lost) {
      EXPECT_EQ(lost.rank, 5) << lost.text;
      EXPECT_NE(lost.text.find("pid " + std::to_string(child)), std::string::npos) << lost.text;
      ++told;
    };
    auto joined = Bootstrap::join(options);
    ++joinedRanks;
    ASSERT_TRUE(joined.ok());
    while (joinedRanks < 11) std::this_thread::sleep_for(milliseconds(1));
    const auto start = SteadyClock::now();
    if (rank == 0) ::kill(child, SIGKILL);
    EXPECT_EQ(joined.value()->barrier().code(), ncclRemoteError);
    while (told < 11 && secondsSince(start) < 5.0) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_LT(secondsSince(start), 1.0 + 4.0 * (told < 11));
  });
  EXPECT_EQ(told, 11);
  ::waitpid(child, nullptr, 0);
}

TEST(BootstrapFailure, StoppedProcessIsNamedToAllOthers) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("no sign of life");
  auto settings = test::localSettings();
  settings.peerTimeout = milliseconds(600);
  const auto ids = test::makeIds(1, settings);
  const pid_t child = ::fork();
  if (child == 0) {
    auto joined = Bootstrap::join(test::joinOptions(ids, 1, 4, settings));
    ::pause();
    ::_exit(joined.ok() ? 0 : 1);
  }
  test::runRanks(3, [&](int i) {
    auto joined = Bootstrap::join(test::joinOptions(ids, i == 0 ? 0 : i + 1, 4, settings));
    ASSERT_TRUE(joined.ok());
    if (i == 0) ::kill(child, SIGSTOP);
    EXPECT_EQ(joined.value()->barrier().code(), ncclRemoteError);
  });
  EXPECT_NE(std::string(lastErrorText()).find("pid " + std::to_string(child) + ") has given"), std::string::npos)
      << lastErrorText();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// Puts something else in the place of what this process's threads sleep in.
int takeEventQueues() {
  int taken = 0;
  const Fd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) != "anon_inode:[eventpoll]") continue;
    const int queue = std::stoi(entry.path().filename().string());
    taken += ::dup3(other.get(), queue, O_CLOEXEC) == queue ? 1 : 0;
  }
  return taken;
}

TEST(BootstrapFailure, DescriptorsThatTheProgramHasClosedAreItsRanksOwnFailure) {
  if (!kCanTakeDescriptorsAway) GTEST_SKIP() << "ThreadSanitizer takes that for a race with a root that is ending";
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  std::vector<std::unique_ptr<Bootstrap>> ranks(2);
  std::mutex mutex;
  std::vector<PeerLost> heard;
  test::runRanks(2, [&](int rank) {
    JoinOptions options = test::joinOptions(ids, rank, 2, settings);
    options.onPeerLost = [&](const PeerLost& lost) {
      const std::lock_guard lock(mutex);
      heard.push_back(lost);
    };
    auto joined = Bootstrap::join(options);
    ASSERT_TRUE(joined.ok());
    ranks[static_cast<std::size_t>(rank)] = std::move(joined).value();
  });
  EXPECT_GE(takeEventQueues(), 2);
  const auto told = [&] {
    const std::lock_guard lock(mutex);
    return heard.size();
  };
  const Deadline limit = Deadline::in(std::chrono::seconds(20));
  while (told() < 2 && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
  ranks.clear();
  ASSERT_EQ(heard.size(), 2U);
  for (const PeerLost& lost : heard) {
    EXPECT_EQ(lost.why.code(), ncclSystemError);
    EXPECT_NE(lost.text.find("failed: its bootstrap's descriptors are no more"), std::string::npos) << lost.text;
  }
}

TEST(BootstrapFailure, IdlingIsNoSilence) {
  auto settings = test::localSettings();
  settings.peerTimeout = milliseconds(600);
  const auto ids = test::makeIds(1, settings);
  test::runRanks(3, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 3, settings));
    ASSERT_TRUE(joined.ok());
    std::this_thread::sleep_for(settings.peerTimeout * 4 / 3);
    EXPECT_TRUE(joined.value()->lost().ok());
    EXPECT_TRUE(joined.value()->barrier().ok());
  });
}

TEST(BootstrapFailure, NeighboursWithLessPatienceAreGivenMoreSignsOfLife) {
  // With the process of the root and as parent, or as child.
  for (const int hasty : {0, 2}) {
    auto settings = test::localSettings();
    settings.peerTimeout = milliseconds(hasty == 0 ? 300 : 60'000);
    const auto ids = test::makeIds(1, settings);
    test::runRanks(10, [&](int rank) {
      auto own = settings;
      own.peerTimeout = milliseconds(rank == hasty ? 300 : 60'000);
      // Late ones keep the others waiting in touch with the root.
      if (rank == 9) std::this_thread::sleep_for(milliseconds(350));
      auto joined = Bootstrap::join(test::joinOptions(ids, rank, 10, own));
      ASSERT_TRUE(joined.ok()) << hasty;
      std::this_thread::sleep_for(milliseconds(650));
      EXPECT_TRUE(joined.value()->lost().ok()) << hasty;
      EXPECT_TRUE(joined.value()->barrier().ok());
    });
  }
}

TEST(BootstrapFailure, KilledDuringInitIsNamedToThoseWhoWait) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("rank 1 (host ");
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  const pid_t child = ::fork();
  if (child == 0) {
    auto joined = Bootstrap::join(test::joinOptions(ids, 1, 4, settings));
    ::_exit(joined.ok() ? 0 : 1);
  }
  std::thread killer([child] {
    std::this_thread::sleep_for(milliseconds(300));
    ::kill(child, SIGKILL);
  });
  const auto start = SteadyClock::now();
  test::runRanks(2, [&](int i) {  // rank 3 never comes
    EXPECT_EQ(Bootstrap::join(test::joinOptions(ids, i * 2, 4, settings)).status().code(), ncclRemoteError);
  });
  EXPECT_LT(secondsSince(start), 5.0);
  EXPECT_NE(std::string(lastErrorText()).find("pid " + std::to_string(child) + ") died"), std::string::npos)
      << lastErrorText();
  killer.join();
  ::waitpid(child, nullptr, 0);
}

TEST(BootstrapFailure, StoppedDuringInitIsNamedToThoseWhoWait) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("rank 1 (host ");
  auto settings = test::localSettings();
  settings.peerTimeout = milliseconds(400);
  const auto ids = test::makeIds(1, settings);
  const pid_t child = ::fork();
  if (child == 0) {
    auto joined = Bootstrap::join(test::joinOptions(ids, 1, 4, settings));
    ::_exit(joined.ok() ? 0 : 1);
  }
  std::thread stopper([child] {
    std::this_thread::sleep_for(milliseconds(200));
    ::kill(child, SIGSTOP);
  });
  test::runRanks(2, [&](int i) {  // rank 3 never comes
    EXPECT_EQ(Bootstrap::join(test::joinOptions(ids, i * 2, 4, settings)).status().code(), ncclRemoteError);
  });
  EXPECT_NE(std::string(lastErrorText()).find("pid " + std::to_string(child) + ") has given the root no sign"),
            std::string::npos)
      << lastErrorText();
  stopper.join();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace tutti::bootstrap
