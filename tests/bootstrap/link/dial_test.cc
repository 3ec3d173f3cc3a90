#include "bootstrap/link/dial.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "base/log.h"
#include "link/knocking.h"

namespace tutti::bootstrap {
namespace {

using Kind = Dialed::Kind;

class DialTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(initCrypto().ok());
    fillRandom(key_);
    target_ = {listener_.address(), key_, Purpose::Peer, 1, 0, 4096};
    limits_.listening = limits_.deadline = Deadline::in(std::chrono::seconds(20));
  }
  Socket accepted() {
    Socket socket;
    EXPECT_TRUE(listener_.acceptQuietly({Deadline::in(std::chrono::seconds(20)), nullptr, -1}, &socket).done());
    return socket;
  }
  /// The other side of one handshake.
  static void serve(Socket socket, const Key& key) {
    Link link(std::move(socket), ServerHandshake(key, 0), 4096);
    std::vector<Frame> none;
    EXPECT_TRUE(test::eventually([&] {
      link.receive(none);
      link.flush();
      return link.open() || link.end().has_value();
    }));
  }

  Key key_{};
  Listener listener_ = Listener::listen(Address::loopback(AF_INET)).value();
  DialTarget target_;
  DialLimits limits_;
};

TEST_F(DialTest, WhoIsTurnedAwayComesAgain) {
  std::thread server([this] {
    for (int i = 0; i < 5; ++i) setAbrupt(accepted().fd(), true);  // closed at once, with a reset
    for (int i = 0; i < 2; ++i) {
      const Socket heard = accepted();
      setAbrupt(heard.fd(), true);
      std::this_thread::sleep_for(milliseconds(10));  // with its hello unread
    }
    serve(accepted(), key_);
  });
  const Dialed dialed = dial(target_, limits_);
  server.join();
  EXPECT_EQ(dialed.kind, Kind::Open);
  ASSERT_TRUE(dialed.link);
  EXPECT_TRUE(dialed.link->open());
}

TEST_F(DialTest, AnotherKeyIsNamedAfterAFewTries) {
  Key other = key_;
  other[0] ^= std::byte{1};
  std::thread server([&] {
    for (int i = 0; i < 3; ++i) serve(accepted(), other);
  });
  const Dialed dialed = dial(target_, limits_);
  server.join();
  EXPECT_EQ(dialed.kind, Kind::Refused);
  EXPECT_EQ(dialed.verdict, Verdict::WrongKey);
}

TEST_F(DialTest, AnotherVersionIsTold) {
  std::thread server([&] {
    Socket socket = accepted();
    Challenge challenge;
    challenge.magic = 0x31747554;
    challenge.version = 77;
    (void)socket.trySend(std::as_bytes(std::span(&challenge, 1)));
    std::array<std::byte, sizeof(Hello)> hello{};
    (void)socket.recvQuietly(hello, {Deadline::in(std::chrono::seconds(20)), nullptr, -1});
  });
  const Dialed dialed = dial(target_, limits_);
  server.join();
  EXPECT_EQ(dialed.kind, Kind::Refused);
  EXPECT_EQ(dialed.verdict, Verdict::OtherVersion);
  EXPECT_EQ(dialed.version, 77);
}

TEST_F(DialTest, AServerTellsAClientOfAnotherVersionWhichItSpeaks) {
  std::thread server([&] { serve(accepted(), key_); });
  Socket socket = test::connectTo(target_.at);
  Hello hello = ClientHandshake(key_, Purpose::Peer, 1, 0).hello();
  hello.head.version = 77;
  (void)socket.trySend(std::as_bytes(std::span(&hello, 1)));
  Challenge answer;
  const auto bytes = std::as_writable_bytes(std::span(&answer, 1));
  EXPECT_TRUE(socket.recvQuietly(bytes, {Deadline::in(std::chrono::seconds(20)), nullptr, -1}).done());
  server.join();
  EXPECT_EQ(answer.version, kProtocolVersion);
  EXPECT_EQ(answer.proof, Proof{});
}

TEST_F(DialTest, WhoDoesNotAnswerIsSilent) {
  limits_.answer = milliseconds(150);
  EXPECT_EQ(dial(target_, limits_).kind, Kind::Silent);
}

TEST_F(DialTest, NobodyListens) {
  listener_.close();
  limits_.listening = Deadline::in(milliseconds(100));
  const Dialed dialed = dial(target_, limits_);
  EXPECT_EQ(dialed.kind, Kind::NobodyListens);
  EXPECT_EQ(dialed.error, ECONNREFUSED);
}

TEST_F(DialTest, ThisProcessIsShortOfDescriptors) {
  const test::NoDescriptors none;
  const Dialed dialed = dial(target_, limits_);
  EXPECT_EQ(dialed.kind, Kind::OwnTrouble);
  EXPECT_EQ(dialed.error, EMFILE);
}

TEST_F(DialTest, AnyWaitCanBeStopped) {
  std::atomic<int> asked{0};
  limits_.stop = [&] { return ++asked > 3 ? Status(ncclRemoteError) : Status(); };
  const Dialed silent = dial(target_, limits_);
  EXPECT_EQ(silent.kind, Kind::Stopped);
  EXPECT_EQ(silent.why.code(), ncclRemoteError);
  listener_.close();
  asked = 0;
  EXPECT_EQ(dial(target_, limits_).kind, Kind::Stopped);
}

}  // namespace
}  // namespace tutti::bootstrap
