#include "base/socket/socket.h"

#include <gtest/gtest.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/socket/interfaces.h"
#include "support/log_capture.h"

namespace tutti {
namespace {

using Kind = IoOutcome::Kind;
using namespace std::chrono_literals;

struct Pair {
  Socket client;
  Socket server;
};

Pair makePair(int family = AF_INET) {
  auto listener = Listener::listen(Address::loopback(family));
  EXPECT_TRUE(listener.ok());
  auto client = Socket::connect(listener.value().address(), Wait{});
  auto server = listener.value().accept(Wait{});
  EXPECT_TRUE(client.ok() && server.ok());
  return {std::move(client).value(), std::move(server).value()};
}

void exchange(int family) {
  Pair pair = makePair(family);
  EXPECT_TRUE(pair.client.sendValue(42, Wait{}).ok());
  int value = 0;
  EXPECT_TRUE(pair.server.recvValue(value, Wait{}).ok());
  EXPECT_EQ(value, 42);
  EXPECT_EQ(pair.client.local(), pair.server.peer());
}

TEST(Socket, ExchangesOverIpv4) {
  exchange(AF_INET);
}

TEST(Socket, ExchangesOverIpv6) {
  Fd probe(::socket(AF_INET6, SOCK_STREAM, 0));
  const Address local = Address::loopback(AF_INET6);
  if (!probe.valid() || ::bind(probe.get(), local.raw(), local.length()) != 0) GTEST_SKIP() << "no IPv6 loopback here";
  exchange(AF_INET6);
}

TEST(Socket, ATryThatMeetsItselfHasFoundNobody) {
  auto listener = Listener::listen(Address::loopback(AF_INET));
  const Address at = listener.value().address();
  listener.value().close();
  Socket socket;
  const IoOutcome outcome = Socket::tryConnect(at, Wait{}, &socket, at);
  EXPECT_EQ(outcome.kind, Kind::Failed);
  EXPECT_EQ(outcome.error, ECONNREFUSED);
  EXPECT_FALSE(socket.valid());
}

TEST(Socket, ReceiveTimesOutAndNamesThePeer) {
  test::expectLog("the time ran out");
  Pair pair = makePair();
  int value = 0;
  EXPECT_EQ(pair.server.recvValue(value, {.deadline = Deadline::in(20ms)}).code(), ncclRemoteError);
  EXPECT_NE(test::capturedText().find(pair.server.peer().text()), std::string::npos);
}

TEST(Socket, ClosedPeerIsARemoteError) {
  test::expectLog("closed by the peer");
  Pair pair = makePair();
  pair.client.close();
  int value = 0;
  EXPECT_EQ(pair.server.recvValue(value, Wait{}).code(), ncclRemoteError);
}

TEST(Socket, AbortEndsAWaitWithItsStatus) {
  Pair pair = makePair();
  Abort abort;
  std::thread raiser([&abort] { abort.raise(Status(ncclSystemError), "test"); });
  int value = 0;
  EXPECT_EQ(pair.server.recvValue(value, {.deadline = Deadline::in(20s), .abort = &abort}).code(), ncclSystemError);
  raiser.join();
}

TEST(Socket, WakeDescriptorEndsAWaitQuietly) {
  Pair pair = makePair();
  const Fd wake(::eventfd(1, EFD_CLOEXEC));
  std::byte byte{};
  const Wait wait{.deadline = Deadline::in(20s), .abort = nullptr, .wakeFd = wake.get()};
  EXPECT_EQ(pair.server.recvQuietly({&byte, 1}, wait).kind, Kind::Aborted);
}

TEST(Socket, LargeMessagesSurviveShortWritesAndSignals) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &action, nullptr);  // without SA_RESTART: calls end with EINTR
  Pair pair = makePair();
  std::vector<std::byte> sent(4 << 20, std::byte{7});
  std::vector<std::byte> received(sent.size());
  std::atomic<bool> done{false};
  std::thread sender([&] { EXPECT_TRUE(pair.client.sendAll(sent, Wait{}).ok()); });
  std::thread pest([&, target = ::pthread_self()] {
    while (!done) {
      ::pthread_kill(target, SIGUSR1);
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_TRUE(pair.server.recvAll(received, Wait{}).ok());
  done = true;
  sender.join();
  pest.join();
  EXPECT_EQ(sent, received);
}

TEST(Socket, RefusedConnectionSaysWhyAfterItsRetries) {
  test::expectLog("Connection refused (111)");
  Address gone;
  {
    auto listener = Listener::listen(Address::loopback(AF_INET));
    gone = listener.value().address();
  }
  EXPECT_EQ(Socket::connect(gone, Wait{}, {.count = 2, .step = 1ms}).status().code(), ncclRemoteError);
}

TEST(Socket, ConnectWaitsForALateListener) {
  auto first = Listener::listen(Address::loopback(AF_INET), {.reusePort = true});
  const Address address = first.value().address();
  first.value().close();
  std::thread late([&address] {
    std::this_thread::sleep_for(30ms);
    auto listener = Listener::listen(address, {.reusePort = true});
    ASSERT_TRUE(listener.ok());
    EXPECT_TRUE(listener.value().accept(Wait{}).ok());
  });
  EXPECT_TRUE(Socket::connect(address, Wait{}, {.count = 200, .step = 1ms}).ok());
  late.join();
}

TEST(Listener, AcceptTimesOut) {
  test::expectLog("Nobody connected");
  auto listener = Listener::listen(Address::loopback(AF_INET));
  EXPECT_EQ(listener.value().accept({.deadline = Deadline::in(10ms)}).status().code(), ncclRemoteError);
}

TEST(Listener, TakenPortIsNamed) {
  test::expectLog("Another process listens there");
  auto first = Listener::listen(Address::loopback(AF_INET));
  EXPECT_EQ(Listener::listen(first.value().address()).status().code(), ncclSystemError);
}

TEST(Address, ParsesAndPrints) {
  EXPECT_EQ(Address::parse("10.1.2.3:80").value().text(), "10.1.2.3<80>");
  EXPECT_EQ(Address::parse("[::1]:80").value().text(), "::1<80>");
  EXPECT_EQ(Address::parse("[fe80::1%lo]:9").value().text(), "fe80::1%lo<9>");
}

TEST(Address, FindsNamesInTheHostsFile) {
  addrinfo* found = nullptr;
  if (getaddrinfo("localhost", nullptr, nullptr, &found) != 0) GTEST_SKIP() << "this machine does not know localhost";
  freeaddrinfo(found);
  EXPECT_TRUE(Address::parse("localhost:7", AF_INET).value().isLoopback());
}

TEST(Address, RejectsWhatIsNoAddress) {
  for (const char* text : {"", "host", "1.2.3.4:", "1.2.3.4:x", "::1:80", ":80", "1.2.3.4:70000", "[]:1"}) {
    test::expectLog("is no address");
    EXPECT_EQ(Address::parse(text).status().code(), ncclInvalidArgument) << text;
  }
}

NetInterface net(const char* name, const char* address, unsigned bits) {
  Address parsed = Address::parse(address).value();
  parsed.setPort(0);
  return {name, parsed, bits};
}

std::string chosen(const InterfaceChoice& choice) {
  const std::vector<NetInterface> all{net("lo", "127.0.0.1:0", 8), net("docker0", "172.17.0.1:0", 16),
                                      net("eth0", "10.0.0.1:0", 24), net("eth0", "[2001:db8::1]:0", 64),
                                      net("eth1", "10.1.0.1:0", 24)};
  std::string names;
  for (const auto& one : chooseInterfaces(all, choice)) names += one.name + " ";
  return names;
}

TEST(Interfaces, ChosenInTheOrderUsersKnow) {
  EXPECT_EQ(chosen({}), "eth0 eth1 ");
  EXPECT_EQ(chosen({.names = "eth1"}), "eth1 ");
  EXPECT_EQ(chosen({.names = "=eth"}), "");
  EXPECT_EQ(chosen({.names = "^eth,docker"}), "lo ");
  EXPECT_EQ(chosen({.names = "^=eth0,lo"}), "docker0 eth1 ");
  EXPECT_EQ(chosen({.family = AF_INET6}), "eth0 ");
  EXPECT_EQ(chosen({.subnetOf = Address::parse("10.1.0.9:5").value()}), "eth1 ");
}

TEST(Interfaces, SayWhyEachIsTakenOrNot) {
  const std::vector<NetInterface> all{net("lo", "127.0.0.1:0", 8), net("eth0", "10.0.0.1:0", 24),
                                      net("eth0", "[2001:db8::1]:0", 64), net("eth1", "10.1.0.1:0", 24)};
  using Use = InterfaceUse;
  const InterfaceVerdict usual = judgeInterfaces(all, {});
  EXPECT_EQ(usual.rule, InterfaceRule::Ordinary);
  EXPECT_EQ(usual.uses, (std::vector<Use>{Use::OtherRule, Use::Taken, Use::OtherAddress, Use::Taken}));
  const InterfaceVerdict few = judgeInterfaces(all, {.family = AF_INET, .limit = 1});
  EXPECT_EQ(few.uses, (std::vector<Use>{Use::OtherRule, Use::Taken, Use::OtherFamily, Use::TooMany}));
  const InterfaceVerdict listed = judgeInterfaces(all, {.names = "lo"});
  EXPECT_EQ(listed.rule, InterfaceRule::Listed);
  EXPECT_EQ(listed.uses, (std::vector<Use>{Use::Taken, Use::OtherRule, Use::OtherRule, Use::OtherRule}));
  const InterfaceVerdict none = judgeInterfaces(all, {.names = "nosuch"});
  EXPECT_EQ(none.rule, std::nullopt);
  EXPECT_EQ(none.uses, std::vector<Use>(4, Use::OtherRule));
  EXPECT_EQ(judgeInterfaces({all[0]}, {}).rule, InterfaceRule::Loopback);
}

TEST(Interfaces, OfThisHostAreAllSeenWithTheirState) {
  const auto sights = seeInterfaces();
  ASSERT_TRUE(sights.ok());
  std::set<std::string> names;
  std::vector<std::string> usable;
  for (const InterfaceSight& sight : sights.value()) {
    names.insert(sight.interface.name);
    EXPECT_TRUE(sight.state != InterfaceState::Usable || sight.interface.address.set()) << sight.interface.name;
    if (sight.state == InterfaceState::Usable) usable.push_back(sight.interface.text());
  }
  for (const auto& folder : std::filesystem::directory_iterator("/sys/class/net")) {
    if (!folder.is_directory()) continue;
    EXPECT_TRUE(names.contains(folder.path().filename())) << folder.path();
  }
  const auto all = listInterfaces();
  ASSERT_TRUE(all.ok());
  std::vector<std::string> listed;
  for (const NetInterface& one : all.value()) listed.push_back(one.text());
  EXPECT_EQ(listed, usable);
}

TEST(Interfaces, NothingFittingListsWhatThereIs) {
  test::expectLog("no socket interface found");
  EXPECT_EQ(bootstrapInterface("=nosuch0", "").status().code(), ncclInvalidUsage);
}

}  // namespace
}  // namespace tutti
