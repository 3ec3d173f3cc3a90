#include "transport/net/tcp/net.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "support/descriptors.h"
#include "support/log_capture.h"
#include "transport/net/tcp/io.h"
#include "transport/net/tcp/socket_pair.h"

namespace tutti::net::tcp {
namespace {

using namespace test;

/// Sends messages of the given sizes, `depth` at a time, and compares everything.
void exchange(test::SocketPair& pair, const std::vector<std::size_t>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto sent = test::pattern(sizes[i], static_cast<unsigned>(i));
    std::vector<unsigned char> received(sizes[i] + 8, 0xee);
    void* in = pair.recv(received.data(), sizes[i] + 4);
    void* out = pair.send(sent.data(), sizes[i]);
    ASSERT_EQ(pair.finish(out, in), static_cast<int>(sizes[i]));
    ASSERT_TRUE(std::equal(sent.begin(), sent.end(), received.begin())) << sizes[i];
    ASSERT_EQ(received[sizes[i] + 7], 0xee);
  }
}

const std::vector<std::size_t> kSizes{
    0,     55,    56,     57,     63,     64,   65,   127,     8127,  8128,    8129, 0,        1,
    7,     8,     9,      999,    1000,   1001, 4096, 8183,    8184,  8185,    8192, 8193,     16384,
    16385, 65536, 100000, 131072, 262145, 0,    3,    1 << 20, 12345, 4 << 20, 1,    16 << 20, (16 << 20) - 3};

TEST(SocketNet, CarriesMessagesOfAllSizes) {
  test::SocketSide side;
  test::SocketPair pair(side);
  exchange(pair, kSizes);
}

TEST(SocketNet, CarriesMessagesOfAllSizesOverSeveralSockets) {
  test::SocketSide side(test::manySockets(0, 3));
  test::SocketPair pair(side);
  exchange(pair, kSizes);
}

TEST(SocketNet, CarriesMessagesOfAllSizesByHelperThreads) {
  test::SocketSide side(test::manySockets(2, 2));
  test::SocketPair pair(side);
  exchange(pair, kSizes);
}

TEST(SocketNet, CarriesMessagesOfAllSizesByAHelperWithOneSocket) {
  test::SocketSide side(test::manySockets(1, 1));
  test::SocketPair pair(side);
  exchange(pair, kSizes);
}

TEST(SocketNet, LetsTheListenerDecideAboutTheSockets) {
  test::SocketSide sender(test::manySockets(2, 2));
  test::SocketSide receiver(test::manySockets(0, 5));
  test::SocketPair pair(sender, receiver);
  exchange(pair, {0, 1, 1000, 1001, 100000, 1 << 20});
}

/// As many messages as requests are posted on both sides before anything is tested; the last is tested first.
void keepOrder(test::SocketSide& side) {
  test::SocketPair pair(side);
  constexpr std::size_t kMessages = 32;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<unsigned char>> sent, received;
    std::array<void*, kMessages> out, in;
    for (std::size_t i = 0; i < kMessages; ++i) {
      sent.push_back(test::pattern(i * i * i * 2, static_cast<unsigned>(i)));
      received.emplace_back(70000);
    }
    for (std::size_t i = 0; i < kMessages; ++i) out[i] = pair.send(sent[i].data(), sent[i].size());
    for (std::size_t i = 0; i < kMessages; ++i) in[i] = pair.recv(received[i].data(), received[i].size());
    for (std::size_t i = kMessages; i-- > 0;) {
      ASSERT_EQ(pair.finish(out[i], in[i]), static_cast<int>(sent[i].size()));
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(std::equal(sent[i].begin(), sent[i].end(), received[i].begin()));
    }
  }
}

TEST(SocketNet, KeepsMessagesInOrder) {
  test::SocketSide side;
  keepOrder(side);
}

TEST(SocketNet, KeepsMessagesInOrderWithHelpers) {
  test::SocketSide side(test::manySockets(2, 1));
  keepOrder(side);
}

/// A receiver that has read a long message reads the next one to its place before it knows how long that is: then more
/// may have come than that message, or less. Each burst is there before the first of it is received.
void takeAnyLengthAfterLongOnes(test::SocketSide& side) {
  test::SocketPair pair(side);
  const std::vector<std::vector<std::size_t>> bursts{
      {30000}, {9000, 100, 8193, 0}, {20000}, {56, 57, 1, 0, 9000}, {9000},  {20000, 20000}, {30000},
      {0, 1},  {9001, 64},           {50000}, {40000, 3},           {12000}, {64, 12000},    {8192, 100}};
  unsigned seed = 0;
  for (const std::vector<std::size_t>& burst : bursts) {
    std::vector<std::vector<unsigned char>> sent, received(burst.size(), std::vector<unsigned char>(60000, 0xee));
    std::vector<void*> out;
    for (const std::size_t length : burst) {
      sent.push_back(test::pattern(length, ++seed));
      out.push_back(pair.send(sent.back().data(), length));
    }
    for (void* const one : out) ASSERT_TRUE(test::until([&] { return test::SocketPair::testOne(pair.sendNet, one); }));
    std::vector<void*> in;
    for (std::vector<unsigned char>& place : received) in.push_back(pair.recv(place.data(), place.size()));
    for (std::size_t i = 0; i < burst.size(); ++i) {
      ASSERT_EQ(pair.finish(nullptr, in[i]), static_cast<int>(burst[i])) << "burst of " << burst[0] << ", " << i;
      ASSERT_TRUE(std::equal(sent[i].begin(), sent[i].end(), received[i].begin())) << burst[0] << ", " << i;
    }
  }
}

TEST(SocketNet, TakesMessagesOfAnyLengthAfterLongOnes) {
  test::SocketSide side;
  takeAnyLengthAfterLongOnes(side);
}

TEST(SocketNet, TakesMessagesOfAnyLengthAfterLongOnesOverSeveralSockets) {
  Params params = test::manySockets(0, 2);
  params.sockets.inlineBytes = 25000;  // some on the first socket, longer ones on the others
  test::SocketSide side(params);
  takeAnyLengthAfterLongOnes(side);
}

TEST(SocketNet, AsksToTryAgainWhenAllRequestsAreTaken) {
  test::SocketSide side;
  test::SocketPair pair(side);
  char out = 'x';
  std::array<char, 40> in{};
  std::vector<void*> sends, recvs;
  for (int i = 0; i < 32; ++i) {
    sends.push_back(pair.send(&out, 1));
    recvs.push_back(pair.recv(&in[static_cast<std::size_t>(i)], 1));
    ASSERT_NE(sends.back(), nullptr);
    ASSERT_NE(recvs.back(), nullptr);
  }
  EXPECT_EQ(pair.send(&out, 1), nullptr);
  EXPECT_EQ(pair.recv(&in[32], 1), nullptr);
  ASSERT_EQ(pair.finish(sends[0], recvs[0]), 1);
  void* sent = pair.send(&out, 1);
  void* received = pair.recv(&in[32], 1);
  ASSERT_NE(sent, nullptr);
  ASSERT_NE(received, nullptr);
  EXPECT_EQ(pair.send(&out, 1), nullptr);
  EXPECT_EQ(pair.finish(sent, received), 1);
  for (std::size_t i = 1; i < 32; ++i) EXPECT_EQ(pair.finish(sends[i], recvs[i]), 1);
}

TEST(SocketNet, ProgressesEarlierMessagesWhenOnlyTheEarliestIsTested) {
  test::SocketSide side;
  test::SocketPair pair(side);
  const auto sent = test::pattern(3 << 20, 5);
  std::vector<unsigned char> first(sent.size()), second(sent.size());
  void* in1 = pair.recv(first.data(), first.size());
  void* in2 = pair.recv(second.data(), second.size());
  void* out1 = pair.send(sent.data(), sent.size());
  void* out2 = pair.send(sent.data(), sent.size());
  ASSERT_EQ(pair.finish(out1, in1), static_cast<int>(sent.size()));
  ASSERT_EQ(pair.finish(out2, in2), static_cast<int>(sent.size()));
  EXPECT_EQ(first, sent);
  EXPECT_EQ(second, sent);
}

TEST(SocketNet, SendsWhatWasPostedTogetherWhenItIsTested) {
  test::SocketSide side;
  test::SocketPair pair(side);
  const auto data = test::pattern(3000, 5);
  std::vector<unsigned char> got(data.size());
  void* received = pair.recv(got.data(), 1000);
  std::vector<void*> sent;
  for (std::size_t at = 0; at < data.size(); at += 1000) sent.push_back(pair.send(data.data() + at, 1000));
  EXPECT_FALSE(test::SocketPair::testOne(pair.recvNet, received)) << "each message took a call of its own";
  EXPECT_TRUE(test::SocketPair::testOne(pair.sendNet, sent[0]));
  EXPECT_TRUE(test::SocketPair::testOne(pair.sendNet, sent[1]));
  EXPECT_TRUE(test::SocketPair::testOne(pair.sendNet, sent[2]));
  EXPECT_EQ(pair.finish(nullptr, received), 1000);
  for (std::size_t at = 1000; at < data.size(); at += 1000) {
    EXPECT_EQ(pair.finish(nullptr, pair.recv(got.data() + at, 1000)), 1000);
  }
  EXPECT_EQ(got, data);
}

TEST(SocketNet, ServesManyConnectionsFromOneThread) {
  test::SocketSide side;
  constexpr std::size_t kPairs = 50;
  std::vector<std::unique_ptr<test::SocketPair>> pairs;
  std::vector<void*> out, in;
  std::vector<std::vector<unsigned char>> received(kPairs, std::vector<unsigned char>(300000));
  const auto sent = test::pattern(300000, 9);
  for (std::size_t i = 0; i < kPairs; ++i) {
    pairs.push_back(std::make_unique<test::SocketPair>(side));
    in.push_back(pairs[i]->recv(received[i].data(), received[i].size()));
    out.push_back(pairs[i]->send(sent.data() + i, sent.size() - i));
  }
  for (std::size_t i = kPairs; i-- > 0;) {
    ASSERT_EQ(pairs[i]->finish(out[i], in[i]), static_cast<int>(sent.size() - i));
    ASSERT_EQ(std::memcmp(received[i].data(), sent.data() + i, sent.size() - i), 0);
  }
}

TEST(SocketNet, ConnectsManyAtOnceFromOneThread) {
  test::SocketSide side;
  struct Half {
    plugin::NetHandle handle{};
    void* listener = nullptr;
    void* sender = nullptr;
    void* receiver = nullptr;
  };
  std::vector<Half> all(40);
  for (Half& one : all) {
    auto listening = side.net->listen(0, one.handle);
    ASSERT_TRUE(listening.ok());
    one.listener = listening.value();
  }
  EXPECT_TRUE(test::until([&] {
    bool ready = true;
    for (Half& one : all) {
      if (one.sender == nullptr) one.sender = side.net->connect(0, one.handle).value();
      if (one.receiver == nullptr) one.receiver = side.net->accept(one.listener).value();
      ready = ready && one.sender != nullptr && one.receiver != nullptr;
    }
    return ready;
  }));
  for (Half& one : all) {
    EXPECT_TRUE(side.net->closeListen(one.listener).ok());
    EXPECT_TRUE(side.net->closeSend(one.sender).ok());
    EXPECT_TRUE(side.net->closeRecv(one.receiver).ok());
  }
}

/// Open descriptors of this process.
TEST(SocketNet, LeavesNoDescriptorAfterAThousandConnections) {
  test::SocketSide plain;
  test::SocketSide several(test::manySockets(1, 2));
  { test::SocketPair warm(plain); }
  const std::size_t before = test::openDescriptors();
  for (int i = 0; i < 1000; ++i) {
    char byte = 'x';
    test::SocketPair pair(i % 10 == 0 ? several : plain);
    if (i % 3 == 0) pair.recv(&byte, 1);
    if (i % 4 == 0) pair.send(&byte, 1);
  }
  EXPECT_EQ(test::openDescriptors(), before);
}

TEST(SocketNet, GivesUpWhatWasBegunButNeverStood) {
  const std::size_t before = test::openDescriptors();
  {
    test::SocketSide side;
    plugin::NetHandle handle{};
    auto listening = side.net->listen(0, handle);
    ASSERT_TRUE(listening.ok());
    auto sender = side.net->connect(0, handle);
    ASSERT_TRUE(sender.ok());
    EXPECT_EQ(sender.value(), nullptr);
    auto nobody = side.net->accept(listening.value());
    EXPECT_TRUE(nobody.ok());
    if (nobody.ok() && nobody.value() != nullptr) {
      EXPECT_TRUE(side.net->closeRecv(nobody.value()).ok());
    }
    EXPECT_TRUE(side.net->closeListen(listening.value()).ok());
  }
  EXPECT_EQ(test::openDescriptors(), before);
}

TEST(SocketNet, WorksOverIpv6) {
  Params params = test::loopbackParams();
  params.sockets.ifname = "";
  params.sockets.family = "AF_INET6";
  test::SocketSide side(params);
  if (side.net->devices().value() == 0) GTEST_SKIP() << "no interface with an IPv6 address here";
  test::SocketPair pair(side);
  exchange(pair, {0, 1, 100000});
}

TEST(SocketNet, OffersADescriptorToSleepOn) {
  test::SocketSide side;
  test::SocketPair pair(side);
  char out = 'x', in = 0;
  void* received = pair.recv(&in, 1);
  pollfd one{SocketNet::receivePollFd(pair.receiver), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  EXPECT_TRUE(test::SocketPair::testOne(pair.sendNet, pair.send(&out, 1)));
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
  EXPECT_EQ(pair.finish(nullptr, received), 1);
  EXPECT_GE(SocketNet::sendPollFd(pair.sender), 0);
}

TEST(SocketNet, KeepsShortTheWayToAPeerOnTheSameHost) {
  const auto sendBuffer = [](const Params& params) {
    test::SocketSide side(params);
    const test::SocketPair pair(side);
    int bytes = 0;
    socklen_t length = sizeof(bytes);
    const int fd = SocketNet::sendPollFd(pair.sender);
    EXPECT_EQ(::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length), 0);
    return bytes;  // twice what was asked for
  };
  EXPECT_LE(sendBuffer(test::loopbackParams()), 512 << 10) << "the system's own choice is some megabytes";
  Params asked = test::loopbackParams();
  asked.sockets.sendBuffer = 70000;
  EXPECT_EQ(sendBuffer(asked), 140000) << "the user's choice stands";
}

std::string congestionControlOf(int fd) {
  char name[64] = {};
  socklen_t length = sizeof(name) - 1;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
  return name;
}

/// A socket that uses anything but reno, if there is anything: the system's own may be that.
Fd pacedSocket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const std::string_view other : {"cubic", "bbr"}) {
    static_cast<void>(::setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, other.data(), other.size()));
  }
  return fd;
}

/// Whether this process may choose it.
bool mayUseReno() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0;
}

TEST(SocketNet, DoesNotPaceWhatStaysOnTheHost) {
  if (!mayUseReno()) GTEST_SKIP() << "the system does not let this process choose how TCP sends";
  test::SocketSide side;
  test::SocketPair pair(side);
  EXPECT_EQ(congestionControlOf(SocketNet::sendPollFd(pair.sender)), "reno") << "which sends what it may at once";
}

TEST(SocketNet, LeavesTheSystemToItsChoiceToOtherHosts) {
  // Addresses for documentation. Whether there is a way to them or none, they are not this host's.
  for (const char* elsewhere : {"192.0.2.1:9", "[2001:db8::1]:9"}) {
    const Address peer = Address::parse(elsewhere).value();
    const Fd fd = pacedSocket(peer.family());
    if (!fd.valid()) continue;  // no IPv6
    const std::string before = congestionControlOf(fd.get());
    dropPacing(fd.get(), peer);
    EXPECT_EQ(congestionControlOf(fd.get()), before) << elsewhere;
  }
}

TEST(SocketNet, DoesNotPaceOnTheWayToTheHostItselfInEitherFamily) {
  if (!mayUseReno()) GTEST_SKIP() << "the system does not let this process choose how TCP sends";
  for (const int family : {AF_INET, AF_INET6}) {
    const Address peer = Address::loopback(family, 9);
    const Fd probe(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!probe.valid() || ::connect(probe.get(), peer.raw(), peer.length()) != 0) continue;  // no IPv6
    const Fd fd = pacedSocket(peer.family());
    dropPacing(fd.get(), peer);
    EXPECT_EQ(congestionControlOf(fd.get()), "reno") << peer.text();
  }
}

/// What becomes of a wish for a send buffer of so many bytes: the system bounds it.
int sendBufferFor(int wished) {
  int most = wished;
  std::ifstream("/proc/sys/net/core/wmem_max") >> most;
  return std::min(wished, most);
}

TEST(SocketNet, HasRoomForALongMessageToAPeerOnTheSameHost) {
  for (const int asked : {-1, 70000}) {
    Params params = test::loopbackParams();
    params.sockets.sendBuffer = asked;
    test::SocketSide side(params);
    test::SocketPair pair(side);
    const auto sent = [&](std::size_t bytes) {
      const auto data = test::pattern(bytes, 1);
      std::vector<unsigned char> in(bytes);
      void* received = pair.recv(in.data(), bytes);
      EXPECT_EQ(pair.finish(pair.send(data.data(), bytes), received), static_cast<int>(bytes));
      int buffer = 0;
      socklen_t length = sizeof(buffer);
      EXPECT_EQ(::getsockopt(SocketNet::sendPollFd(pair.sender), SOL_SOCKET, SO_SNDBUF, &buffer, &length), 0);
      return buffer / 2;
    };
    EXPECT_EQ(sent(400 << 10), sendBufferFor(asked < 0 ? 400 << 10 : asked));
    EXPECT_EQ(sent(4 << 20), sendBufferFor(asked < 0 ? 512 << 10 : asked));
    EXPECT_EQ(sent(100), sendBufferFor(asked < 0 ? 512 << 10 : asked));
  }
}

TEST(SocketNet, TakesHostMemoryOnly) {
  test::expectLog("not the host's");
  test::SocketSide side;
  test::SocketPair pair(side);
  int word = 0;
  auto host = side.net->registerMemory(pair.sender, &word, sizeof(word), plugin::PtrKind::Host);
  ASSERT_TRUE(host.ok());
  EXPECT_TRUE(side.net->deregisterMemory(pair.sender, host.value()).ok());
  EXPECT_EQ(side.net->registerMemory(pair.sender, &word, sizeof(word), plugin::PtrKind::Cuda).status().code(),
            ncclInvalidUsage);
}

TEST(SocketNet, RefusesHandlesOfOtherNetworks) {
  test::expectLog("none of this network");
  test::SocketSide side;
  plugin::NetHandle handle{};
  handle.fill(std::byte{3});
  EXPECT_EQ(side.net->connect(0, handle).status().code(), ncclInternalError);
}

TEST(SocketNet, RefusesDevicesThatAreNotThere) {
  test::expectLog("There is no device 1: this host has 1");
  test::SocketSide side;
  EXPECT_EQ(side.net->properties(1).status().code(), ncclInvalidArgument);
}

}  // namespace
}  // namespace tutti::net::tcp
