// Small parts: hashes, host names, threads, libraries, handles, and the test kit itself.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <array>
#include <atomic>

#include "base/dl.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "base/threads/waker.h"
#include "support/fake_control_channel.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"

namespace tutti {
namespace {

TEST(Hash, DependsOnEveryByteAndTheSeed) {
  EXPECT_EQ(hashText("abc"), hashText("abc"));
  EXPECT_NE(hashText("abc"), hashText("abd"));
  EXPECT_NE(hashText("abc"), hashText("abc", 1));
}

TEST(Hash, OfWordsDependsOnTheirOrderAndOnEveryBit) {
  EXPECT_NE(hashWord(1, hashWord(2, 0)), hashWord(2, hashWord(1, 0)));
  EXPECT_NE(hashWord(0, 0), 0U) << "a sequence that begins with 0 is another than none";
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(hashWord(std::uint64_t{1} << bit, 7), hashWord(0, 7)) << bit;
    EXPECT_NE(hashWord(7, std::uint64_t{1} << bit), hashWord(7, 0)) << bit;
  }
}

TEST(Host, NamesAreCutForLogs) {
  EXPECT_EQ(shortHostName("node1.example.org"), "node1");
  EXPECT_EQ(shortHostName("a%b/c"), "a-b-c");
  EXPECT_EQ(hostIdentity().value().hash, hostIdentity().value().hash);
  EXPECT_NE(hostIdentity("x").value().hash, hostIdentity("y").value().hash);
}

TEST(Host, ABootIdThatCannotBeReadIsAnErrorAndOneThatIsNotThereIsNone) {
  EXPECT_FALSE(bootId().value().empty());
  EXPECT_EQ(bootId("/no/such/file").value(), "");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto read = bootId();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(read.status().code(), ncclSystemError);
  test::expectLog("Too many open files (24). Raise the limits of this process (ulimit -n");
}

TEST(Thread, JoinsWhenDestroyed) {
  std::atomic<bool> ran{false};
  {
    ASSERT_TRUE(Thread::start("test", [&ran] { ran = true; }).ok());
  }
  EXPECT_TRUE(ran);
}

TEST(DlLibrary, MissingLibrarySaysWhy) {
  std::string why;
  EXPECT_FALSE(DlLibrary::open("libno-such-thing.so", &why).valid());
  EXPECT_NE(why.find("libno-such-thing.so"), std::string::npos);
}

TEST(Fd, MoveLeavesTheSourceEmpty) {
  Fd first(::dup(0));
  const Fd second = std::move(first);
  EXPECT_FALSE(first.valid());
  EXPECT_TRUE(second.valid());
}

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(Waker, IsReadableFromTheFirstCallUntilItIsDrained) {
  const Waker waker = Waker::create();
  ASSERT_TRUE(waker.valid());
  EXPECT_FALSE(readable(waker.fd()));
  waker.wake();
  waker.wake();
  EXPECT_TRUE(readable(waker.fd()));
  waker.drain();
  EXPECT_FALSE(readable(waker.fd())) << "of several calls one is seen";
  waker.drain();
}

TEST(Waker, OfNobodyWakesNobody) {
  const Waker waker;
  EXPECT_FALSE(waker.valid());
  waker.wake();
}

[[gnu::noinline]] void sleepForEver() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

TEST(RunRanks, TellsOfARankThatHangsWhereItStands) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto oneHangs = [] {
    test::runRanks(
        2,
        [](int rank) {
          if (rank == 1) sleepForEver();
        },
        std::chrono::seconds(1));
  };
  EXPECT_EXIT(oneHangs(), testing::ExitedWithCode(1), "have not returned: 1\n(.|\n)*sleepForEver");
}

TEST(FakeWorld, GathersBroadcastsAndDelivers) {
  test::FakeWorld world(4);
  test::runRanks(4, [&](int rank) {
    ControlChannel& channel = world.channel(rank);
    std::array<int, 4> values{};
    values[static_cast<std::size_t>(rank)] = rank * 10;
    EXPECT_TRUE(allGatherValues<int>(channel, values).ok());
    EXPECT_EQ(values, (std::array<int, 4>{0, 10, 20, 30}));
    int word = rank == 2 ? 99 : 0;
    EXPECT_TRUE(channel.broadcast(2, std::as_writable_bytes(std::span(&word, 1))).ok());
    EXPECT_EQ(word, 99);
    EXPECT_TRUE(channel.barrier().ok());
  });
}

TEST(FakeWorld, MissingRankIsNamed) {
  test::FakeWorld world(2, std::chrono::milliseconds(10));
  test::expectLog("nothing came from rank 1");
  EXPECT_EQ(world.channel(0).barrier().code(), ncclRemoteError);
}

TEST(FakeWorld, AbortEndsCalls) {
  test::FakeWorld world(2);
  world.abortAll(Status(ncclSystemError));
  EXPECT_EQ(world.channel(0).barrier().code(), ncclSystemError);
}

}  // namespace
}  // namespace tutti
