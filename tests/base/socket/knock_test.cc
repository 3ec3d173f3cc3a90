#include "base/socket/knock.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "base/socket/socket.h"

namespace tutti {
namespace {

using Kind = IoOutcome::Kind;

constexpr std::uint32_t kNobodyByLuck = 1U << 31;
constexpr milliseconds kNoAnswer{60};

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

KnockWord word(std::uint32_t offset, std::string_view four) {
  KnockWord made{offset, {}};
  std::memcpy(made.bytes.data(), four.data(), made.bytes.size());
  return made;
}

/// A listener on loopback whose clients begin with "open", four bytes of anything, and "door".
class KnockTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const Fd probe(::socket(GetParam(), SOCK_STREAM, 0));
    const Address any = Address::loopback(GetParam());
    if (!probe.valid() || ::bind(probe.get(), any.raw(), any.length()) != 0) GTEST_SKIP() << "no such addresses here";
    listener_ = Listener::listen(any).value();
  }
  void narrow(std::uint32_t oneIn = kNobodyByLuck) {
    const std::array<KnockWord, 2> words{word(0, "open"), word(8, "door")};
    ASSERT_TRUE(answerKnocks(listener_.fd(), words, oneIn));
  }
  Kind connect(Socket& socket, milliseconds within = std::chrono::seconds(20)) {
    return Socket::tryConnect(listener_.address(), {Deadline::in(within), nullptr, -1}, &socket).kind;
  }
  Kind knock(Socket& socket, std::string_view with, milliseconds within = std::chrono::seconds(20)) {
    return Socket::tryKnock(listener_.address(), {Deadline::in(within), nullptr, -1}, bytesOf(with), &socket, &sent_)
        .kind;
  }
  Socket accepted() {
    Socket socket;
    EXPECT_TRUE(listener_.acceptQuietly({Deadline::in(std::chrono::seconds(20)), nullptr, -1}, &socket).done());
    return socket;
  }
  /// All that comes until the other side ends.
  static std::string heard(Socket& socket) {
    std::string text(1000, '\0');
    const IoOutcome outcome = socket.recvQuietly(std::as_writable_bytes(std::span(text.data(), text.size())),
                                                 {Deadline::in(std::chrono::seconds(20)), nullptr, -1});
    EXPECT_EQ(outcome.kind, Kind::Closed);
    text.resize(outcome.bytes);
    return text;
  }

  Listener listener_;
  std::size_t sent_ = 0;
};

TEST_P(KnockTest, OnlyWhoKnocksIsAnswered) {
  narrow();
  Socket plain, garbage, part, right;
  EXPECT_EQ(connect(plain, kNoAnswer), Kind::TimedOut);
  EXPECT_EQ(knock(garbage, "GET / HTTP/1.1 and more", kNoAnswer), Kind::TimedOut);
  EXPECT_EQ(knock(part, "open1234doo", kNoAnswer), Kind::TimedOut);
  ASSERT_EQ(knock(right, "open1234door"), Kind::Done);
  if (sent_ == 0) GTEST_SKIP() << "this system sends nothing ahead";
  (void)right.trySend(bytesOf(" and more"));
  right.close();
  Socket server = accepted();
  EXPECT_EQ(heard(server), "open1234door and more");
  Socket none;
  EXPECT_EQ(listener_.acceptQuietly({Deadline::in(milliseconds(1)), nullptr, -1}, &none).kind, Kind::TimedOut);
}

TEST_P(KnockTest, WhatIsSentAfterwardsMayComeInAnyPieces) {
  narrow();
  Socket client;
  ASSERT_EQ(knock(client, "open1234door"), Kind::Done);
  if (sent_ == 0) GTEST_SKIP() << "this system sends nothing ahead";
  Socket server = accepted();
  std::string expected = "open1234door";
  for (const std::string_view piece : {"x", "nonsense that opens nothing", "y"}) {
    ASSERT_TRUE(client.trySend(bytesOf(piece)).done());
    expected += piece;
  }
  ASSERT_TRUE(server.trySend(bytesOf("answer")).done());
  std::array<std::byte, 6> answer{};
  EXPECT_TRUE(client.recvQuietly(answer, {Deadline::in(std::chrono::seconds(20)), nullptr, -1}).done());
  client.close();
  EXPECT_EQ(heard(server), expected);
}

TEST_P(KnockTest, OfThoseWhoDoNotKnockOneInSoManyIsAnswered) {
  narrow(2);
  int answered = 0;
  constexpr int kTries = 40;
  for (int i = 0; i < kTries; ++i) {
    Socket socket;
    if (connect(socket, milliseconds(10)) == Kind::Done) ++answered;
  }
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, kTries);
}

TEST_P(KnockTest, EverybodyCanBeAnsweredAgain) {
  narrow();
  answerEverybody(listener_.fd());
  Socket plain;
  EXPECT_EQ(connect(plain), Kind::Done);
}

TEST_P(KnockTest, AListenerThatKnowsNothingOfItHearsEachByteOnce) {
  Socket client;
  ASSERT_EQ(knock(client, "open1234door"), Kind::Done);
  (void)client.trySend(bytesOf(std::string_view("open1234door").substr(sent_)));
  client.close();
  Socket server = accepted();
  EXPECT_EQ(heard(server), "open1234door");
}

TEST_P(KnockTest, WhereNobodyListensAKnockIsRefused) {
  const Address at = listener_.address();
  listener_.close();
  Socket socket;
  const IoOutcome outcome =
      Socket::tryKnock(at, {Deadline::in(std::chrono::seconds(20)), nullptr, -1}, bytesOf("open"), &socket, &sent_);
  EXPECT_EQ(outcome.kind, Kind::Failed);
  EXPECT_EQ(outcome.error, ECONNREFUSED);
}

INSTANTIATE_TEST_SUITE_P(Families, KnockTest, testing::Values(AF_INET, AF_INET6),
                         [](const auto& one) { return one.param == AF_INET ? "IPv4" : "IPv6"; });

TEST(Knock, WhatIsNoSocketCannotFilter) {
  EXPECT_FALSE(answerKnocks(-1, {}, 2));
}

}  // namespace
}  // namespace tutti
