// Whom the others are told of: the rank whose failure it was, not who tells, and not who gives up because of it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "base/host.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "children.h"
#include "local_ranks.h"

namespace tutti::bootstrap {
namespace {

constexpr milliseconds kPatience{20'000};

/// What one rank was told, the latest last.
class Told {
 public:
  void add(const PeerLost& lost) {
    const std::lock_guard lock(mutex_);
    all_.push_back(lost);
  }
  std::vector<PeerLost> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  /// Waits until it was told so many times; what it was told last of these.
  PeerLost await(std::size_t times) const {
    const Deadline limit = Deadline::in(kPatience);
    while (all().size() < times && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_GE(all().size(), times);
    return all().size() < times ? PeerLost() : all()[times - 1];
  }

 private:
  mutable std::mutex mutex_;
  std::vector<PeerLost> all_;
};

std::unique_ptr<Bootstrap> join(const std::vector<ncclUniqueId>& ids, int rank, int nRanks,
                                const BootstrapSettings& settings, Told* told, int device = -1) {
  JoinOptions options = test::joinOptions(ids, rank, nRanks, settings);
  options.device = device;
  if (told != nullptr) options.onPeerLost = [told](const PeerLost& lost) { told->add(lost); };
  auto joined = Bootstrap::join(options);
  EXPECT_TRUE(joined.ok());
  return joined.ok() ? std::move(joined).value() : nullptr;
}

/// Until so many have come.
void awaitAll(std::atomic<int>& count, int all) {
  ++count;
  const Deadline limit = Deadline::in(kPatience);
  while (count < all && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
}

TEST(Blame, AFailureIsToldWithTheNameHostProcessAndDeviceOfTheRankThatFailed) {
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  Told told[3];
  std::atomic<int> ready{0};
  test::runRanks(3, [&](int rank) {
    const auto self = join(ids, rank, 3, settings, &told[rank], rank + 4);
    ASSERT_NE(self, nullptr);
    awaitAll(ready, 3);
    if (rank == 1) {
      self->announceFailure(Status(ncclRemoteError), "Cuda failure 999");
    } else {
      const std::string who =
          "rank 1 (host " + hostName() + ", pid " + std::to_string(::getpid()) + ", device 5) failed: Cuda failure 999";
      const PeerLost lost = told[rank].await(1);
      EXPECT_EQ(lost.text, who);
      EXPECT_EQ(lost.rank, 1);
      EXPECT_FALSE(lost.corrects);
    }
    (void)self->barrier();
    // Nobody leaves before all have been told.
    const Deadline limit = Deadline::in(kPatience);
    while ((told[0].all().empty() || told[2].all().empty()) && !limit.expired()) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  EXPECT_TRUE(told[1].all().empty()) << "it knows already";
  test::allowLog("Cuda failure 999");
}

TEST(Blame, WhatARankSawOfAnotherIsToldAsThatOnesAndWitnessed) {
  test::allowLog("rank 2 hung up");
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  Told told;
  std::atomic<int> ready{0};
  test::runRanks(2, [&](int rank) {
    const auto self = join(ids, rank, 2, settings, rank == 0 ? &told : nullptr);
    ASSERT_NE(self, nullptr);
    awaitAll(ready, 2);
    if (rank == 1) self->announceFailure(Status(ncclRemoteError), "rank 2 hung up", true);
    const PeerLost lost = told.await(1);
    EXPECT_EQ(lost.text.find("rank 2 hung up (seen by rank 1 (host "), 0U) << lost.text;
  });
}

/// A process that joins as `rank` of each of these, and then does nothing.
pid_t startVictim(const std::vector<std::pair<std::vector<ncclUniqueId>, int>>& places, int nRanks,
                  const std::vector<BootstrapSettings>& settings) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  std::vector<std::unique_ptr<Bootstrap>> joined;
  for (std::size_t i = 0; i < places.size(); ++i) {
    joined.push_back(join(places[i].first, places[i].second, nRanks, settings[i], nullptr));
  }
  ::pause();
  ::_exit(0);
}

void stopAndAwait(pid_t child) {
  ::kill(child, SIGSTOP);
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
}

void killAndReap(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(Blame, AnAbortIsBlamedOnTheRankOfWhichAnotherCommunicatorHasHeard) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("sign of life");
  auto hasty = test::localSettings();
  hasty.peerTimeout = milliseconds(600);
  auto patient = test::localSettings();
  patient.peerTimeout = milliseconds(60'000);
  // It is rank 1 of the first communicator and rank 2 of the second, which has not missed it yet.
  const auto first = test::makeIds(1, hasty);
  const auto second = test::makeIds(1, patient);
  const pid_t child = startVictim({{first, 1}, {second, 2}}, 3, {hasty, patient});
  Told inFirst;
  Told inSecond;
  std::atomic<bool> over{false};
  test::runRanks(2, [&](int i) {
    const auto one = join(first, i == 0 ? 0 : 2, 3, hasty, i == 0 ? &inFirst : nullptr);
    const auto two = join(second, i, 3, patient, i == 1 ? &inSecond : nullptr);
    ASSERT_TRUE(one && two);
    ASSERT_TRUE(i == 1 || two->send(1, 7, {}).ok());
    ASSERT_TRUE(i == 0 || two->recv(0, 7, {}).ok());  // both are there
    if (i == 0) {
      stopAndAwait(child);
      EXPECT_EQ(inFirst.await(1).rank, 1);
      two->announceAbort(Status(ncclInvalidUsage));
      const Deadline limit = Deadline::in(kPatience);
      while (!over && !limit.expired()) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    const PeerLost lost = inSecond.await(1);
    EXPECT_EQ(lost.rank, 2) << lost.text;
    const std::string who = "Bootstrap: rank 2 (host " + hostName() + ", pid " + std::to_string(child) + ")";
    EXPECT_EQ(lost.text.find(who + " gives no sign of life"), 0U) << lost.text;
    EXPECT_EQ(lost.text.find("died"), std::string::npos) << "it is only stopped: " << lost.text;
    EXPECT_NE(lost.text.find("rank 0 (host"), std::string::npos) << "who has aborted: " << lost.text;
    over = true;
  });
  killAndReap(child);
}

TEST(Blame, ADeathOfWhoHadNotHeardOfTheAbortReplacesItAsTheCause) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("rank ");
  auto settings = test::localSettings();
  settings.peerTimeout = milliseconds(60'000);
  const auto ids = test::makeIds(1, settings);
  const pid_t child = startVictim({{ids, 2}}, 3, {settings});
  Told told[2];
  std::atomic<int> ready{0};
  test::runRanks(2, [&](int rank) {
    const auto self = join(ids, rank, 3, settings, &told[rank]);
    ASSERT_NE(self, nullptr);
    awaitAll(ready, 2);
    if (rank == 0) {
      stopAndAwait(child);
      self->announceAbort(Status(ncclInvalidUsage));
      told[1].await(1);
      killAndReap(child);
    }
    told[1].await(2);
  });
  const PeerLost lost = told[1].await(2);
  EXPECT_EQ(lost.rank, 2) << lost.text;
  EXPECT_TRUE(lost.corrects);
  EXPECT_NE(lost.text.find("pid " + std::to_string(child) + ") died"), std::string::npos) << lost.text;
  EXPECT_EQ(told[1].all().front().rank, 0) << "of the abort it heard first";
}

TEST(Blame, WhoEndsBecauseItHasHeardOfAnAbortIsNotTheCause) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("aborted its communicator");
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<bool> told{false};
    JoinOptions options = test::joinOptions(ids, 2, 3, settings);
    options.onPeerLost = [&](const PeerLost&) { told = true; };
    auto joined = Bootstrap::join(options);
    while (!told) std::this_thread::sleep_for(milliseconds(1));
    ::_exit(joined.ok() ? 0 : 1);  // without a word
  }
  Told told[2];
  test::runRanks(2, [&](int rank) {
    const auto self = join(ids, rank, 3, settings, &told[rank]);
    ASSERT_NE(self, nullptr);
    if (rank == 0) {
      std::byte unused{};
      EXPECT_TRUE(self->recv(1, 1, std::span(&unused, 1)).ok());
      self->announceAbort(Status(ncclInvalidUsage));
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    } else {
      const std::byte ready{};
      EXPECT_TRUE(self->send(0, 1, std::span(&ready, 1)).ok());
    }
    told[1].await(1);
    std::this_thread::sleep_for(milliseconds(500));
  });
  EXPECT_TRUE(told[0].all().empty());
  ASSERT_EQ(told[1].all().size(), 1U);
  EXPECT_EQ(told[1].all().front().rank, 0);
}

}  // namespace
}  // namespace tutti::bootstrap
