#include "transport/net/tcp/epoll_set.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "support/log_capture.h"
#include "transport/net/tcp/socket_pair.h"

namespace tutti::test {
namespace {

/// Both ends of a stream, ours watched by `arrivals`.
struct Watched {
  explicit Watched(net::tcp::EpollSet& by) : arrivals(by) {
    int ends[2]{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    ours = Fd(ends[0]);
    theirs = Fd(ends[1]);
    EXPECT_TRUE(arrivals.add(ours.get(), came));
  }
  ~Watched() { arrivals.remove(ours.get()); }
  void write(std::string_view text) const {
    EXPECT_EQ(::write(theirs.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Reads until there is nothing more; how much there was.
  std::size_t empty() const {
    char buffer[64];
    std::size_t all = 0;
    for (ssize_t n = 0; (n = ::read(ours.get(), buffer, sizeof(buffer))) > 0;) all += static_cast<std::size_t>(n);
    return all;
  }
  /// What asking now says of it.
  bool told() {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    arrivals.ask(SteadyClock::now());
    return came.exchange(false);
  }
  net::tcp::EpollSet& arrivals;
  std::atomic<bool> came{false};
  Fd ours;
  Fd theirs;
};

TEST(EpollSet, TellOnceOfWhatHasCome) {
  const auto arrivals = net::tcp::EpollSet::create();
  Watched one(*arrivals);
  Watched other(*arrivals);
  EXPECT_FALSE(one.told());
  one.write("a");
  EXPECT_TRUE(one.told());
  EXPECT_FALSE(other.came);
  EXPECT_FALSE(one.told()) << "it is still there, but was told of";
  EXPECT_EQ(one.empty(), 1u);
  one.write("b");
  EXPECT_TRUE(one.told());
}

TEST(EpollSet, TellOfWhatWasThereBefore) {
  const auto arrivals = net::tcp::EpollSet::create();
  Watched one(*arrivals);
  arrivals->remove(one.ours.get());
  one.write("a");
  EXPECT_FALSE(one.told());
  EXPECT_TRUE(arrivals->add(one.ours.get(), one.came));
  EXPECT_TRUE(one.told());
}

TEST(EpollSet, TellOfThePeersEnd) {
  const auto arrivals = net::tcp::EpollSet::create();
  Watched one(*arrivals);
  one.theirs = Fd();
  EXPECT_TRUE(one.told());
}

TEST(EpollSet, TellOfMoreSocketsThanOneCallOfTheSystemNames) {
  const auto arrivals = net::tcp::EpollSet::create();
  std::vector<std::unique_ptr<Watched>> many;
  for (int i = 0; i < 200; ++i) many.push_back(std::make_unique<Watched>(*arrivals));
  for (const auto& one : many) one->write("a");
  for (int turn = 0; turn < 4; ++turn) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    arrivals->ask(SteadyClock::now());
  }
  for (const auto& one : many) EXPECT_TRUE(one->came);
}

TEST(EpollSet, RefuseWhatIsNoSocket) {
  const auto arrivals = net::tcp::EpollSet::create();
  std::atomic<bool> came{false};
  EXPECT_FALSE(arrivals->add(-1, came));
}

TEST(EpollSet, MayBeAskedByManyWhileSocketsComeAndGo) {
  const auto arrivals = net::tcp::EpollSet::create();
  std::atomic<bool> over{false};
  std::vector<std::thread> askers;
  for (int i = 0; i < 2; ++i) {
    askers.emplace_back([&] {
      while (!over) arrivals->ask(SteadyClock::now());
    });
  }
  for (int i = 0; i < 300; ++i) {
    Watched one(*arrivals);
    one.write("a");
    EXPECT_TRUE(until([&] { return one.came.load(); }));
  }
  over = true;
  for (std::thread& asker : askers) asker.join();
}

/// As long as a receiver is idle before it relies on being told.
void letItBeIdle() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(SocketReceiver, HearsAfterAWhileOfMessagesAndOfTheEnd) {
  SocketSide side;
  SocketPair pair(side);
  for (const std::size_t bytes : {8, 5000, 100'000, 0}) {
    const auto data = pattern(bytes, 3);
    std::vector<unsigned char> in(bytes);
    void* received = pair.recv(in.data(), in.size());
    for (int i = 0; i < 3; ++i) {
      letItBeIdle();
      EXPECT_FALSE(SocketPair::testOne(*side.net, received));
    }
    EXPECT_EQ(pair.finish(pair.send(data.data(), bytes), received), static_cast<int>(bytes));
    EXPECT_EQ(in, data);
  }
}

TEST(SocketReceiver, HearsOfADeathThatCameTogetherWithAMessage) {
  SocketSide here;
  SocketSide there;
  SocketPair pair(there, here);
  const auto data = pattern(100, 3);
  std::vector<unsigned char> in(data.size());
  void* const first = pair.recv(in.data(), in.size());
  letItBeIdle();
  EXPECT_FALSE(SocketPair::testOne(*here.net, first));
  void* const under = pair.send(data.data(), data.size());
  EXPECT_TRUE(until([&] { return SocketPair::testOne(*there.net, under); }));
  ::shutdown(net::tcp::SocketNet::sendPollFd(pair.sender), SHUT_RDWR);
  letItBeIdle();
  int size = 0;
  EXPECT_TRUE(until([&] { return SocketPair::testOne(*here.net, first, &size); }));
  EXPECT_EQ(size, 100);
  void* const second = pair.recv(in.data(), in.size());
  EXPECT_TRUE(until([&] {
    letItBeIdle();
    return !here.net->test(second, {}).ok();
  }));
  EXPECT_NE(std::string(lastErrorText()).find("Connection closed by remote peer"), std::string::npos)
      << lastErrorText();
}

TEST(EpollSet, AreNoneWhereThereAreNoDescriptors) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit none = old;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto arrivals = net::tcp::EpollSet::create();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(arrivals, nullptr);
}

}  // namespace
}  // namespace tutti::test
