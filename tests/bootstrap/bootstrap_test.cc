#include "bootstrap/bootstrap.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/socket/socket.h"
#include "bootstrap/unique_id.h"
#include "local_ranks.h"
#include "support/until.h"

namespace tutti::bootstrap {
namespace {

using namespace test;

class JoinedSizes : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(JoinedSizes, AllGatherBarrierAndBroadcastAgree) {
  const auto [nRanks, nRoots] = GetParam();
  test::runJoined(nRanks, nRoots, [n = nRanks](Bootstrap& b) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int64_t> values(static_cast<std::size_t>(n), -1);
      values[static_cast<std::size_t>(b.rank())] = b.rank() * 10 + round;
      ASSERT_TRUE(allGatherValues<std::int64_t>(b, values).ok());
      for (int i = 0; i < n; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i * 10 + round);
      ASSERT_TRUE(b.barrier().ok());
      const int root = (round * 5) % n;
      std::int64_t word = b.rank() == root ? 4242 + round : 0;
      ASSERT_TRUE(b.broadcast(root, std::as_writable_bytes(std::span(&word, 1))).ok());
      EXPECT_EQ(word, 4242 + round);
    }
    ASSERT_TRUE(b.barrier().ok());
  });
}
INSTANTIATE_TEST_SUITE_P(Sizes, JoinedSizes,
                         testing::Values(std::pair{1, 1}, std::pair{2, 1}, std::pair{3, 2}, std::pair{4, 1},
                                         std::pair{5, 5}, std::pair{11, 1}, std::pair{16, 3}, std::pair{64, 1}));

TEST(Bootstrap, AllRanksHaveOneKeyForAPurposeAndUnrelatedOnesForOthers) {
  test::runJoined(5, 1, [](Bootstrap& b) {
    std::vector<std::array<std::byte, 32>> keys(5);
    keys[static_cast<std::size_t>(b.rank())] = b.keyFor("test");
    ASSERT_TRUE(allGatherValues(b, std::span(keys)).ok());
    for (const auto& key : keys) EXPECT_EQ(key, keys[0]);
    EXPECT_NE(b.keyFor("test"), b.keyFor("other"));
    ASSERT_TRUE(b.barrier().ok());
  });
}

TEST(Bootstrap, KnowsWhoHasSaidGoodbye) {
  test::runJoined(3, 1, [](Bootstrap& b) {
    ASSERT_TRUE(b.barrier().ok());
    EXPECT_FALSE(b.hasLeft(1));
    ASSERT_TRUE(b.barrier().ok());
    if (b.rank() == 1) return b.leave();
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (!b.hasLeft(1) && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(b.hasLeft(1));
    EXPECT_FALSE(b.hasLeft(b.rank() == 0 ? 2 : 0));
    std::int32_t word = 1;  // so that neither leaves before the other has looked
    const int other = b.rank() == 0 ? 2 : 0;
    ASSERT_TRUE(b.send(other, 1, std::as_bytes(std::span(&word, 1))).ok());
    ASSERT_TRUE(b.recv(other, 1, std::as_writable_bytes(std::span(&word, 1))).ok());
  });
}

TEST(Bootstrap, AFarewellCarriesWhatARankSaysOfItselfAndHowItLeft) {
  // Rank 9 is not next to all: its word has to be passed on.
  runJoined(20, 1, [](Bootstrap& b) {
    const std::array<std::byte, 3> account{std::byte{1}, std::byte{2}, std::byte{3}};
    ASSERT_TRUE(b.barrier().ok());
    if (b.rank() == 9) {
      b.announceExit(account);
      EXPECT_TRUE(b.awaitSaid(Deadline::in(std::chrono::seconds(20))));
      EXPECT_TRUE(b.takeDepartures().empty()) << "who is about to end looks at nobody any more";
      return;
    }
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (!b.hasLeft(9) && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(b.hasExited(9));
    EXPECT_TRUE(b.lost().ok()) << "it left in peace";
    EXPECT_NE(b.describeDeparture(9).find("has ended its process (exit) without ncclCommDestroy"), std::string::npos);
    // The others may leave meanwhile, in any order.
    std::vector<Departure> gone = b.takeDepartures();
    const auto of9 = std::find_if(gone.begin(), gone.end(), [](const Departure& d) { return d.rank == 9; });
    ASSERT_NE(of9, gone.end());
    EXPECT_TRUE(std::equal(account.begin(), account.end(), of9->account.begin(), of9->account.end()));
  });
}

TEST(Bootstrap, WhoWantsToHearOfDeparturesHearsThatThereAreSome) {
  constexpr int kRanks = 3;
  const BootstrapSettings settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  test::runRanks(kRanks, [&](int rank) {
    std::atomic<int> calls{0};
    JoinOptions options = test::joinOptions(ids, rank, kRanks, settings);
    options.onDeparture = [&calls] { ++calls; };
    auto joined = Bootstrap::join(options);
    ASSERT_TRUE(joined.ok());
    Bootstrap& b = *joined.value();
    ASSERT_TRUE(b.barrier().ok());
    if (rank == 2) {
      EXPECT_EQ(calls.load(), 0);
      return b.leave({});
    }
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (calls.load() == 0 && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_GT(calls.load(), 0);
    EXPECT_FALSE(b.takeDepartures().empty()) << "it is there before the call";
  });
}

TEST(Bootstrap, AFarewellReachesThoseWhoExchangedMessagesAlthoughTheRankBetweenThemHasLeft) {
  std::atomic<bool> rootGone = false;
  test::runJoined(4, 1, [&](Bootstrap& b) {
    // Rank 1 has opened a connection to rank 2, and rank 3 one to rank 1. In the tree rank 0 lies between all of them.
    std::int32_t word = b.rank();
    const auto bytes = std::as_writable_bytes(std::span(&word, 1));
    const std::map<int, int> to{{1, 2}, {3, 1}};
    const std::map<int, int> from{{1, 3}, {2, 1}};
    EXPECT_TRUE(!to.contains(b.rank()) || b.send(to.at(b.rank()), 7, bytes).ok());
    EXPECT_TRUE(!from.contains(b.rank()) || b.recv(from.at(b.rank()), 7, bytes).ok());
    ASSERT_TRUE(b.barrier().ok());
    if (b.rank() == 0) {
      b.leave();
      rootGone = true;
      return;
    }
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    const auto until = [&](const auto& done) {
      while (!done() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
    };
    until([&] { return rootGone && b.hasLeft(0); });
    if (b.rank() == 1) return b.leave();
    until([&] { return b.hasLeft(1); });
    EXPECT_TRUE(b.hasLeft(1)) << "rank " << b.rank();
    EXPECT_TRUE(b.lost().ok());
  });
}

TEST(Bootstrap, MessagesArriveInOrderByTagFromEverybody) {
  test::runJoined(12, 1, [](Bootstrap& b) {
    const int n = b.size();
    for (int i = 0; i < 3; ++i) {
      for (int peer = 0; peer < n; ++peer) {
        for (const int tag : {7, -1}) {
          const int value = b.rank() * 1000 + tag * 10 + i;
          ASSERT_TRUE(b.send(peer, tag, std::as_bytes(std::span(&value, 1))).ok());
        }
      }
    }
    for (int peer = n - 1; peer >= 0; --peer) {
      for (const int tag : {-1, 7}) {
        for (int i = 0; i < 3; ++i) {
          int value = 0;
          ASSERT_TRUE(b.recv(peer, tag, std::as_writable_bytes(std::span(&value, 1))).ok());
          EXPECT_EQ(value, peer * 1000 + tag * 10 + i);
        }
      }
    }
    ASSERT_TRUE(b.barrier().ok());
  });
}

TEST(Bootstrap, LargeMessagesPassBothWaysAtOnce) {
  test::runJoined(2, 1, [](Bootstrap& b) {
    std::vector<std::byte> out(8 << 20, static_cast<std::byte>(b.rank() + 1));
    std::vector<std::byte> in(out.size());
    ASSERT_TRUE(b.send(1 - b.rank(), 0, out).ok());
    ASSERT_TRUE(b.recv(1 - b.rank(), 0, in).ok());
    EXPECT_EQ(in.front(), static_cast<std::byte>(2 - b.rank()));
    EXPECT_EQ(in.back(), static_cast<std::byte>(2 - b.rank()));
    ASSERT_TRUE(b.barrier().ok());
  });
}

TEST(Bootstrap, MessageOfAnotherSizeIsAnError) {
  test::expectLog("has 4 bytes, rank 0 expected 8");
  test::runJoined(1, 1, [](Bootstrap& b) {
    const int value = 1;
    std::int64_t wide = 0;
    ASSERT_TRUE(b.send(0, 1, std::as_bytes(std::span(&value, 1))).ok());
    EXPECT_EQ(b.recv(0, 1, std::as_writable_bytes(std::span(&wide, 1))).code(), ncclInternalError);
  });
}

/// An address of this host on which nobody listens, with a port that the kernel does not give to whoever asks for any;
/// unset where the host does not have the family.
Address freeLoopback(int family) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int lowest = 32768;
  range >> lowest;
  for (int i = 0; i < 1000; ++i) {
    const int port = lowest - 1 - (::getpid() * 7 + i) % 8000;
    const Address address = Address::loopback(family, static_cast<std::uint16_t>(port));
    const Fd probe(::socket(family, SOCK_STREAM, 0));
    if (probe.valid() && ::bind(probe.get(), address.raw(), address.length()) == 0) return address;
  }
  return {};
}

class FixedAddress : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Families, FixedAddress, testing::Values(AF_INET, AF_INET6),
                         [](const auto& family) { return family.param == AF_INET ? "IPv4" : "IPv6"; });

TEST_P(FixedAddress, WorksAndWorksAgainOnTheSamePort) {
  const Address address = freeLoopback(GetParam());
  if (!address.set()) GTEST_SKIP() << "this host has no loopback address of the family";
  const std::string host = GetParam() == AF_INET ? "127.0.0.1" : "[::1]";
  BootstrapSettings settings = test::localSettings();
  settings.commId = host + ":" + std::to_string(address.port());
  settings.commKey = "words that are shared";
  for (int round = 0; round < 2; ++round) {
    test::runRanks(4, [&](int rank) {
      const std::vector<ncclUniqueId> ids = test::makeIds(1, settings);
      auto joined = Bootstrap::join(test::joinOptions(ids, rank, 4, settings));
      ASSERT_TRUE(joined.ok());
      ASSERT_TRUE(joined.value()->barrier().ok());
    });
  }
}

TEST(Bootstrap, StrangersNeitherDisturbNorDelay) {
  const BootstrapSettings settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  const Address root = decodeUniqueId(ids[0]).value().root;
  const std::string web = "GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: something rather long\r\n\r\n";
  std::vector<Socket> strangers;
  for (int i = 0; i < 60; ++i) {
    Socket socket;
    (void)Socket::tryConnect(root, Wait(), &socket);  // it may have been turned away already
    if (!socket.valid()) continue;
    const std::string bytes = i % 3 == 0 ? "" : i % 3 == 1 ? web : "Tut1";
    if (!bytes.empty()) (void)socket.trySend(std::as_bytes(std::span(bytes.data(), bytes.size())));
    strangers.push_back(std::move(socket));
  }
  const auto start = SteadyClock::now();
  test::runRanks(4, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 4, settings));
    ASSERT_TRUE(joined.ok());
    ASSERT_TRUE(joined.value()->barrier().ok());
  });
  EXPECT_LT(secondsSince(start), 5.0);
}

TEST(Bootstrap, WhatARankAnnouncesComesToAllOthersOnceAndInOrder) {
  constexpr int kRanks = 20;  // inner ranks pass it on
  const BootstrapSettings settings = test::localSettings();
  const auto ids = test::makeIds(2, settings);
  test::runRanks(kRanks, [&](int rank) {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<int, std::vector<int>> heard;
    JoinOptions options = test::joinOptions(ids, rank, kRanks, settings);
    options.onState = [&](int from, std::span<const std::byte> bytes) {
      int value = -1;
      if (bytes.size() == sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
      const std::lock_guard lock(mutex);
      heard[from].push_back(value);
      changed.notify_all();
    };
    auto joined = Bootstrap::join(options);
    ASSERT_TRUE(joined.ok());
    Bootstrap& b = *joined.value();
    ASSERT_TRUE(b.barrier().ok());
    for (const int value : {rank, rank + 100}) b.announceState(std::as_bytes(std::span(&value, 1)));
    {
      std::unique_lock lock(mutex);
      const bool all = changed.wait_for(lock, std::chrono::seconds(20), [&] {
        return heard.size() == kRanks - 1 &&
               std::all_of(heard.begin(), heard.end(), [](const auto& one) { return one.second.size() == 2; });
      });
      EXPECT_TRUE(all) << "rank " << rank << " heard of " << heard.size();
      for (const auto& [from, values] : heard) EXPECT_EQ(values, (std::vector<int>{from, from + 100})) << rank;
    }
    ASSERT_TRUE(b.barrier().ok());
  });
}

TEST(Bootstrap, GoesOnAfterAnAbortThatWasUndone) {
  test::runJoined(3, 1, [](Bootstrap& b) {
    b.abort(Status(ncclInvalidUsage));
    EXPECT_EQ(b.barrier().code(), ncclInvalidUsage);
    b.resume();
    EXPECT_TRUE(b.barrier().ok());
    EXPECT_TRUE(b.lost().ok());
  });
}

bool hearsOfAFailure(const Bootstrap& b) {
  return test::until([&] { return !b.lost().ok(); });
}

/// A barrier that the bootstrap has no part in: who has passed its own may hear what another one says next before it.
class Meeting {
 public:
  bool all(int ranks) {
    ++came_;
    return test::until([&] { return came_.load() >= ranks; });
  }

 private:
  std::atomic<int> came_ = 0;
};

TEST(Bootstrap, ForgetsWhatHadFailedWhenItIsResumed) {
  Meeting meeting;
  test::runJoined(3, 1, [&](Bootstrap& b) {
    ASSERT_TRUE(meeting.all(3));
    if (b.rank() == 1) b.announceFailure(Status(ncclSystemError), "it was too hot");
    EXPECT_TRUE(hearsOfAFailure(b));
    b.abort(Status(ncclInvalidUsage));
    b.resume();
    EXPECT_TRUE(b.lost().ok());
    EXPECT_TRUE(b.barrier().ok());
    EXPECT_TRUE(b.lost().ok());
  });
}

/// Rank 0, through which the others hear of each other, is ahead of them.
TEST(Bootstrap, HearsNothingOfFailuresOfATimeBeforeItWasResumed) {
  test::allowLog("it is too cold");
  std::atomic<bool> resumed = false;
  std::atomic<bool> heard = false;
  Meeting first;
  Meeting second;
  test::runJoined(3, 1, [&](Bootstrap& b) {
    ASSERT_TRUE(first.all(3));
    if (b.rank() == 0) {
      b.resume();
      resumed = true;
      EXPECT_TRUE(test::until([&] { return heard.load(); }));
      EXPECT_TRUE(b.lost().ok());
    } else {
      EXPECT_TRUE(test::until([&] { return resumed.load(); }));
      if (b.rank() == 1) b.announceFailure(Status(ncclSystemError), "it was too hot");
      EXPECT_TRUE(hearsOfAFailure(b)) << "rank 0 passes it on";
      if (b.rank() == 2) heard = true;
      b.resume();
    }
    EXPECT_TRUE(b.barrier().ok());
    EXPECT_TRUE(second.all(3));
    if (b.rank() == 2) b.announceFailure(Status(ncclSystemError), "it is too cold");
    EXPECT_TRUE(hearsOfAFailure(b)) << "this is of now";
    b.barrier().ignore();
  });
}

/// Before the others are resumed, or when they have been. Rank 2 hears of it through rank 0.
TEST(Bootstrap, MissesARankThatHadFailedAndWentAway) {
  for (const bool early : {true, false}) {
    SCOPED_TRACE(early ? "before" : "after");
    test::allowLog("rank 1 (host ");
    Meeting met;
    Meeting heard;
    Meeting resumed;
    std::atomic<bool> gone = false;
    test::runJoined(3, 1, [&](Bootstrap& b) {
      ASSERT_TRUE(met.all(3));
      if (b.rank() == 1) b.announceFailure(Status(ncclSystemError), "it was too hot");
      EXPECT_TRUE(hearsOfAFailure(b));
      ASSERT_TRUE(heard.all(3));
      if (b.rank() == 1) {
        EXPECT_TRUE(early || resumed.all(3));
        gone = true;
        return;
      }
      if (early) {
        EXPECT_TRUE(test::until([&] { return gone.load(); }));
        std::this_thread::sleep_for(milliseconds(200));  // until its connection has ended; later is right as well
      }
      b.resume();
      EXPECT_TRUE(resumed.all(early ? 2 : 3));
      const auto began = SteadyClock::now();
      EXPECT_EQ(b.barrier().code(), ncclRemoteError);
      EXPECT_LT(secondsSince(began), 10) << "it waits for the timeout, of 20 s";
      EXPECT_NE(std::string(lastErrorText()).find("rank 1 (host "), std::string::npos) << lastErrorText();
    });
  }
}

TEST(Bootstrap, ParentsLeadToRankZero) {
  test::runJoined(12, 3, [](Bootstrap& b) {
    for (int rank = 0; rank < 12; ++rank) {
      int at = rank;
      int hops = 0;
      while (b.parentOf(at) >= 0 && hops++ < 12) at = b.parentOf(at);
      EXPECT_EQ(at, 0) << rank;
    }
  });
}

TEST(Bootstrap, CommunicatorsHaveHashesOfTheirOwn) {
  std::uint64_t hashes[2] = {};
  for (auto& hash : hashes) {
    test::runJoined(2, 1, [&hash](Bootstrap& b) {
      if (b.rank() == 0) hash = b.commHash();
      EXPECT_NE(b.describe(1).find("rank 1 (host "), std::string::npos);
      ASSERT_TRUE(b.barrier().ok());
    });
  }
  EXPECT_NE(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace tutti::bootstrap
