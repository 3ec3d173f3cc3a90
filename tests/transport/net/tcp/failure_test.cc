// What strangers, broken peers and dead ones do to the built-in network.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/socket/socket.h"
#include "base/socket/unproven.h"
#include "support/log_capture.h"
#include "transport/net/tcp/socket_pair.h"

namespace tutti::net::tcp {
namespace {

using namespace test;

/// A listener and its address.
struct Listening {
  explicit Listening(test::SocketSide& from) : side(from) {
    auto made = side.net->listen(0, handle);
    EXPECT_TRUE(made.ok());
    listener = made.value();
    std::memcpy(&said, handle.data(), sizeof(said));
  }
  ~Listening() { EXPECT_TRUE(side.net->closeListen(listener).ok()); }
  Socket dial() const {
    auto socket = Socket::connect(said.address, Wait{});
    EXPECT_TRUE(socket.ok());
    return std::move(socket).value();
  }
  /// Accepts until `step` is true or a connection is there.
  void* acceptUntil(const std::function<bool()>& step) const {
    void* receiver = nullptr;
    EXPECT_TRUE(test::until([&] {
      auto made = side.net->accept(listener);
      EXPECT_TRUE(made.ok());
      receiver = made.ok() ? made.value() : nullptr;
      return receiver != nullptr || step();
    }));
    return receiver;
  }

  test::SocketSide& side;
  plugin::NetHandle handle{};
  SocketHandle said;
  void* listener = nullptr;
};

bool closedByPeer(Socket& socket) {
  std::byte byte{};
  return socket.tryRecv({&byte, 1}).kind == IoOutcome::Kind::Closed;
}

/// The state that a connect() to the same listener ends in.
void connectsAllTheSame(Listening& at) {
  void* sender = nullptr;
  void* receiver = at.acceptUntil([&] {
    if (sender == nullptr) sender = at.side.net->connect(0, at.handle).value();
    return false;
  });
  EXPECT_TRUE(test::until([&] {
    if (sender == nullptr) sender = at.side.net->connect(0, at.handle).value();
    return sender != nullptr;
  }));
  EXPECT_TRUE(at.side.net->closeSend(sender).ok());
  EXPECT_TRUE(at.side.net->closeRecv(receiver).ok());
}

TEST(SocketStrangers, GarbageIsDropped) {
  test::SocketSide side;
  Listening at(side);
  Socket stranger = at.dial();
  ASSERT_TRUE(stranger.sendAll(std::as_bytes(std::span("GET / HTTP/1.1\r\nHost: here\r\n\r\n")), Wait{}).ok());
  EXPECT_EQ(at.acceptUntil([&] { return closedByPeer(stranger); }), nullptr);
  connectsAllTheSame(at);
}

TEST(SocketStrangers, SilentOnesAndHalfAHelloHoldNobodyUp) {
  test::SocketSide side;
  Listening at(side);
  std::vector<Socket> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(at.dial());
  for (std::size_t i = 10; i < 20; ++i) {
    ASSERT_TRUE(strangers[i].sendValue(kSocketMagic, Wait{}).ok());
  }
  connectsAllTheSame(at);
}

TEST(SocketStrangers, SilentOnesAreClosedAfterTwoSeconds) {
  test::SocketSide side;
  Listening at(side);
  const auto start = SteadyClock::now();
  Socket stranger = at.dial();
  ASSERT_TRUE(stranger.sendValue(kSocketMagic, Wait{}).ok());
  EXPECT_EQ(at.acceptUntil([&] { return closedByPeer(stranger); }), nullptr);
  EXPECT_GT(secondsSince(start), 1.0) << "who belongs here may need a moment";
  EXPECT_LT(secondsSince(start), 8.0);
  EXPECT_EQ(UnprovenPlaces::ofProcess().taken(), 0U);
  connectsAllTheSame(at);
}

TEST(SocketStrangers, OfAllListenersShareThePlacesOfTheProcess) {
  test::SocketSide side;
  Listening first(side), second(side);
  std::vector<Socket> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back((i % 2 == 0 ? first : second).dial());
  std::size_t most = 0;
  EXPECT_EQ(first.acceptUntil([&] {
    EXPECT_TRUE(side.net->accept(second.listener).ok());
    most = std::max(most, UnprovenPlaces::ofProcess().taken());
    // Half of the places are for one host.
    return std::count_if(strangers.begin(), strangers.end(), closedByPeer) >= 76;
  }),
            nullptr);
  EXPECT_GT(most, 0U);
  strangers.clear();
  connectsAllTheSame(first);
  connectsAllTheSame(second);
}

TEST(SocketStrangers, WhoIsTurnedAwayWithAResetComesAgain) {
  test::SocketSide side;
  Listening at(side);
  auto crowded = Listener::listen(Address::loopback(AF_INET));
  ASSERT_TRUE(crowded.ok());
  const SocketHandle real = at.said;
  at.said.address = crowded.value().address();
  plugin::NetHandle handle = at.handle;
  std::memcpy(handle.data(), &at.said, sizeof(at.said));
  ASSERT_EQ(side.net->connect(0, handle).value(), nullptr);
  for (int i = 0; i < 3; ++i) {
    Socket turnedAway;
    EXPECT_TRUE(test::until([&] {
      EXPECT_TRUE(side.net->connect(0, handle).ok());
      return crowded.value().acceptQuietly({Deadline::in(milliseconds(1))}, &turnedAway).done();
    })) << "it does not come again";
    const linger how{1, 0};
    ASSERT_EQ(::setsockopt(turnedAway.fd(), SOL_SOCKET, SO_LINGER, &how, sizeof(how)), 0);
  }
  crowded.value().close();
  test::expectLog("closed the connection from lo before it stood");
  EXPECT_TRUE(test::until([&] { return !side.net->connect(0, handle).ok(); })) << "nobody listens there any more";
  at.said = real;
}

TEST(SocketStrangers, AHelloInPiecesIsUnderstood) {
  test::SocketSide side;
  Listening at(side);
  const plugin::NetOpening same = test::opening();
  const SocketIdentity identity{.commId = same.commId, .secret = same.secret};
  const SocketNonce nonce = freshSocketNonce();
  const SocketHello hello = makeHello(identity, at.said.nonce, nonce, 0, 0);
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  Socket peer = at.dial();
  ASSERT_TRUE(peer.sendAll(bytes.first(5), Wait{}).ok());
  int rounds = 0;
  EXPECT_EQ(at.acceptUntil([&] { return ++rounds > 3; }), nullptr);
  ASSERT_TRUE(peer.sendAll(bytes.subspan(5), Wait{}).ok());
  void* receiver = at.acceptUntil([] { return false; });
  ASSERT_NE(receiver, nullptr);
  SocketAnswer answer;
  ASSERT_TRUE(peer.recvValue(answer, Wait{}).ok());
  EXPECT_TRUE(checkAnswer(identity, at.said.nonce, nonce, answer));
  EXPECT_TRUE(side.net->closeRecv(receiver).ok());
}

TEST(SocketStrangers, AnOverheardHelloOpensNoOtherListener) {
  test::SocketSide side;
  Listening first(side), second(side);
  const plugin::NetOpening same = test::opening();
  const SocketIdentity identity{.commId = same.commId, .secret = same.secret};
  const SocketHello hello = makeHello(identity, first.said.nonce, freshSocketNonce(), 0, 0);
  Socket peer = second.dial();
  ASSERT_TRUE(peer.sendValue(hello, Wait{}).ok());
  EXPECT_EQ(second.acceptUntil([&] { return closedByPeer(peer); }), nullptr);
}

TEST(SocketStrangers, AnotherSecretIsTurnedAway) {
  test::expectLog("closed the connection from lo before it stood");
  test::SocketSide side;
  test::SocketSide other(test::loopbackParams(), test::opening(8));
  Listening at(side);
  Status refused;
  EXPECT_EQ(at.acceptUntil([&] {
    refused = other.net->connect(0, at.handle).status();
    return !refused.ok();
  }),
            nullptr);
  EXPECT_EQ(refused.code(), ncclRemoteError);
}

TEST(SocketStrangers, AWrongListenerIsNotSentTo) {
  test::expectLog("is not of this communicator");
  test::SocketSide side;
  Listening at(side);
  auto impostor = Listener::listen(Address::loopback(AF_INET));
  ASSERT_TRUE(impostor.ok());
  at.said.address = impostor.value().address();
  std::memcpy(at.handle.data(), &at.said, sizeof(at.said));
  ASSERT_TRUE(side.net->connect(0, at.handle).ok());
  auto victim = impostor.value().accept(Wait{});
  ASSERT_TRUE(victim.ok());
  ASSERT_TRUE(victim.value().sendValue(SocketAnswer{.magic = kSocketMagic}, Wait{}).ok());
  Status refused;
  EXPECT_TRUE(test::until([&] { return !(refused = side.net->connect(0, at.handle).status()).ok(); }));
  EXPECT_EQ(refused.code(), ncclRemoteError);
}

/// As long as it lives, this process gets no further descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(Fd(::dup(2)).get());
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST(SocketFailure, AListenerWithoutDescriptorsGoesOnWhenThereAreSomeAgain) {
  test::expectLog("Cannot accept connections");
  test::SocketSide side;
  Listening at(side);
  const Socket waiting = at.dial();
  ASSERT_TRUE(Socket(Fd(::dup(waiting.fd())), at.said.address).sendValue(kSocketMagic, Wait{}).ok());
  {
    const NoDescriptors none;
    EXPECT_TRUE(test::until([&] {
      auto made = side.net->accept(at.listener);
      EXPECT_TRUE(made.ok());
      return !made.ok() || test::capturedText().find("ulimit -n") != std::string::npos;
    }));
  }
  connectsAllTheSame(at);
}

TEST(SocketFailure, AListenerThatGetsNoDescriptorsSaysSoWhilePeersStillWait) {
  test::expectLog("Cannot accept connections");
  test::expectLog("failed");
  test::SocketSide side;
  Listening at(side);
  const Socket waiting = at.dial();
  ASSERT_TRUE(Socket(Fd(::dup(waiting.fd())), at.said.address).sendValue(kSocketMagic, Wait{}).ok());
  Status why;
  {
    const NoDescriptors none;
    EXPECT_TRUE(test::until([&] {
      why = side.net->accept(at.listener).status();
      return !why.ok();
    }));
  }
  EXPECT_EQ(why.code(), ncclSystemError);
  EXPECT_NE(test::capturedText().find("ulimit -n"), std::string::npos);
}

TEST(SocketFailure, NobodyListeningIsToldAfterRetries) {
  test::expectLog("Nobody listens there");
  test::SocketSide side;
  plugin::NetHandle handle{};
  { handle = Listening(side).handle; }
  Status refused;
  EXPECT_TRUE(test::until([&] { return !(refused = side.net->connect(0, handle).status()).ok(); }));
  EXPECT_EQ(refused.code(), ncclRemoteError);
}

TEST(SocketFailure, ALongerMessageThanPostedNamesBothSizes) {
  test::expectLog("sends 100 bytes as message 0, but 99 were posted");
  test::SocketSide side;
  test::SocketPair pair(side);
  std::array<char, 100> data{};
  void* received = pair.recv(data.data(), 99);
  EXPECT_TRUE(test::SocketPair::testOne(*side.net, pair.send(data.data(), 100)));
  Result<bool> done = false;
  EXPECT_TRUE(test::until([&] {
    done = side.net->test(received, {});
    return !done.ok();
  }));
  EXPECT_EQ(done.status().code(), ncclInvalidUsage);
  // It sticks, and is told once.
  EXPECT_EQ(side.net->test(received, {}).status().code(), ncclInvalidUsage);
  const plugin::NetBuffer again{.data = data.data(), .bytes = 100};
  EXPECT_EQ(side.net->irecv(pair.receiver, {&again, 1}).status().code(), ncclInvalidUsage);
}

TEST(SocketFailure, APeerThatLeavesInOrderIsNoError) {
  test::SocketSide side;
  test::SocketPair pair(side);
  std::array<int, 2> data{};
  int value = 5, size = 0;
  void* last = pair.recv(&data[0], sizeof(int));
  void* beyond = pair.recv(&data[1], sizeof(int));
  ASSERT_EQ(pair.finish(pair.send(&value, sizeof(int)), nullptr), -1);
  pair.closeSend();
  EXPECT_TRUE(test::until([&] { return test::SocketPair::testOne(*side.net, last, &size); }));
  EXPECT_EQ(data[0], 5);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(test::SocketPair::testOne(*side.net, beyond));
}

/// A receiver whose sender is the test itself, which speaks the protocol by hand.
struct ByHand {
  explicit ByHand(test::SocketSide& from) : side(from), at(from), socket(at.dial()) {
    const plugin::NetOpening same = test::opening();
    const SocketIdentity identity{.commId = same.commId, .secret = same.secret};
    EXPECT_TRUE(socket.sendValue(makeHello(identity, at.said.nonce, freshSocketNonce(), 0, 0), Wait{}).ok());
    receiver = at.acceptUntil([] { return false; });
    SocketAnswer answer;
    EXPECT_TRUE(socket.recvValue(answer, Wait{}).ok());
  }
  ~ByHand() { EXPECT_TRUE(side.net->closeRecv(receiver).ok()); }
  void* recv(void* data, std::size_t bytes) const {
    const plugin::NetBuffer buffer{.data = data, .bytes = bytes};
    return side.net->irecv(receiver, {&buffer, 1}).value();
  }
  Status fails(void* request) const {
    Status status;
    EXPECT_TRUE(test::until([&] { return !(status = side.net->test(request, {}).status()).ok(); }));
    return status;
  }
  test::SocketSide& side;
  Listening at;
  Socket socket;
  void* receiver = nullptr;
};

TEST(SocketFailure, APeerThatDiesBetweenMessagesIsTold) {
  test::SocketSide side;
  ByHand hand(side);
  int word = 0;
  void* received = hand.recv(&word, sizeof(word));
  hand.socket.close();
  EXPECT_EQ(hand.fails(received).code(), ncclRemoteError);
  // Not in the log: it may be a farewell, which comes another way.
  EXPECT_NE(std::string(lastErrorText()).find("on lo) while receiving message 0 (0 of 4 bytes): end of stream"),
            std::string::npos)
      << lastErrorText();
}

TEST(SocketFailure, APeerThatDiesInTheMiddleOfAMessageIsTold) {
  test::expectLog("Connection closed by remote peer 127.0.0.1<");
  test::SocketSide side;
  ByHand hand(side);
  std::vector<std::byte> data(1000);
  void* received = hand.recv(data.data(), data.size());
  ASSERT_TRUE(hand.socket.sendValue(SocketHeader{.bytes = 1000, .sequence = 0}, Wait{}).ok());
  ASSERT_TRUE(hand.socket.sendAll(std::span(data).first(600), Wait{}).ok());
  hand.socket.close();
  EXPECT_EQ(hand.fails(received).code(), ncclRemoteError);
  EXPECT_NE(test::capturedText().find("while receiving message 0 (600 of 1000 bytes)"), std::string::npos);
}

TEST(SocketFailure, ADamagedStreamIsTold) {
  test::expectLog("message 3 came where 0 was due");
  test::SocketSide side;
  ByHand hand(side);
  int word = 0;
  void* received = hand.recv(&word, sizeof(word));
  ASSERT_TRUE(hand.socket.sendValue(SocketHeader{.bytes = 4, .sequence = 3}, Wait{}).ok());
  EXPECT_EQ(hand.fails(received).code(), ncclRemoteError);
}

TEST(SocketFailure, HeadersAndContentsInPiecesArePutTogether) {
  test::SocketSide side;
  ByHand hand(side);
  const auto first = test::pattern(100, 1), second = test::pattern(9, 2), third = test::pattern(64, 3);
  std::vector<unsigned char> wire;
  const auto add = [&](const std::vector<unsigned char>& content, std::uint32_t sequence) {
    SocketHeader header{.bytes = static_cast<std::uint32_t>(content.size()), .sequence = sequence};
    const bool inside = content.size() <= header.content.size();
    if (inside) std::memcpy(header.content.data(), content.data(), content.size());
    const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
    wire.insert(wire.end(), bytes, bytes + sizeof(header));
    if (!inside) wire.insert(wire.end(), content.begin(), content.end());
    wire.resize(wire.size() + socketPadding(wire.size()));
  };
  add(first, 0), add(second, 1), add(third, 2);
  std::vector<std::vector<unsigned char>> got{first, second, third};
  std::vector<void*> requests;
  for (auto& one : got) {
    std::fill(one.begin(), one.end(), 0);
    requests.push_back(hand.recv(one.data(), one.size()));
  }
  std::size_t done = 0;
  const auto test = [&] {
    if (done < requests.size() && test::SocketPair::testOne(*side.net, requests[done])) ++done;
    return done == requests.size();
  };
  for (const unsigned char byte : wire) {
    ASSERT_TRUE(hand.socket.sendValue(byte, Wait{}).ok());
    test();
  }
  EXPECT_TRUE(test::until(test));
  EXPECT_EQ(got, (std::vector<std::vector<unsigned char>>{first, second, third}));
}

/// The receiver goes while a long message is under way.
void losesTheReceiver(test::SocketSide& side) {
  test::allowLog("Connection closed by remote peer");
  const auto data = test::pattern(16 << 20, 1);  // stays until the connection is closed
  test::SocketPair pair(side);
  Status status;
  pair.closeRecv();
  EXPECT_TRUE(test::until([&] {
    auto request =
        side.net->isend(pair.sender, {.data = const_cast<unsigned char*>(data.data()), .bytes = data.size()});
    status = request.status();
    return !status.ok() ||
           (request.value() != nullptr && !(status = side.net->test(request.value(), {}).status()).ok());
  }));
  EXPECT_EQ(status.code(), ncclRemoteError);
}

TEST(SocketFailure, ASenderHearsThatTheReceiverIsGone) {
  test::SocketSide side;
  losesTheReceiver(side);
}

TEST(SocketFailure, ASenderWithHelpersHearsThatTheReceiverIsGone) {
  test::SocketSide side(test::manySockets(2, 2));
  losesTheReceiver(side);
}

TEST(SocketFailure, ClosingWithMessagesUnderWayDoesNotHang) {
  for (int threads : {0, 2}) {
    test::SocketSide side(test::manySockets(threads, 2));
    const auto data = test::pattern(16 << 20, 1);
    std::vector<unsigned char> in(16 << 20);
    test::SocketPair pair(side);
    for (int i = 0; i < 4; ++i) pair.send(data.data(), data.size());
    for (int i = 0; i < 4; ++i) pair.recv(in.data(), in.size());
  }
}

TEST(SocketFailure, AKilledProcessIsToldInTheMiddleOfAMessage) {
  test::expectLog("Connection closed by remote peer");
  test::SocketSide side;
  ByHand hand(side);
  std::vector<std::byte> data(1 << 20);
  void* received = hand.recv(data.data(), data.size());
  // Before the child may be killed: one that ends between two messages may be leaving in peace.
  const SocketHeader header{.bytes = 1 << 20, .sequence = 0};
  ASSERT_EQ(::send(hand.socket.fd(), &header, sizeof(header), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(header)));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  hand.socket.close();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(test::SocketPair::testOne(*side.net, received));
  ::kill(child, SIGKILL);
  EXPECT_EQ(hand.fails(received).code(), ncclRemoteError);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace tutti::net::tcp
