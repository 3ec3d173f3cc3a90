#include "comm/diagnosis/message_exchange.h"

#include <gtest/gtest.h>

#include <deque>

namespace tutti::comm {
namespace {

constexpr MessageSize floats(std::uint64_t n) {
  return static_cast<MessageSize>(ncclFloat32) << 56 | n;
}
constexpr MessageSize bytes(std::uint64_t n) {
  return static_cast<MessageSize>(ncclInt8) << 56 | n;
}

/// Ranks whose words reach all others at once.
class MessageNet {
 private:
  template <typename Body>
  auto with(int rank, const Body& body) {
    const MessageExchange::Say say = [this, rank](std::span<const std::byte> word) {
      ++words;
      for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
        bool verdict = false;
        if (other == rank) continue;
        EXPECT_TRUE(at(other).hear(rank, word, verdict));
      }
    };
    const MessageExchange::Describe describe = [](int named) { return "rank " + std::to_string(named); };
    return body(MessageExchange::Self{rank, static_cast<int>(ranks_.size()), say, describe});
  }

 public:
  explicit MessageNet(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}
  MessageExchange& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void add(int rank, int peer, MessageWay way, MessageSize size) {
    const Message message{peer, way, size};
    at(rank).log().add(std::span(&message, 1));
  }
  /// Both ends of one.
  void exchange(int sender, int receiver, MessageSize size) {
    add(sender, receiver, MessageWay::Sent, size);
    add(receiver, sender, MessageWay::Received, size);
  }
  std::optional<std::string> tick(int rank, int seconds) {
    return with(rank, [&](const MessageExchange::Self& self) {
      return at(rank).tick(MessageExchange::Time{} + std::chrono::seconds(seconds), self);
    });
  }
  void ask(int rank) {
    with(rank, [&](const MessageExchange::Self& self) { return at(rank).ask(self), 0; });
  }
  bool answered(int rank) {
    return at(rank).answered([](int) { return false; });
  }
  int words = 0;

 private:
  std::deque<MessageExchange> ranks_;
};

TEST(MessageExchange, NamesBothEndsOfAMessageOfTwoLengthsOnAllRanks) {
  MessageNet net(3);
  net.exchange(0, 2, floats(7));
  net.add(0, 2, MessageWay::Sent, floats(100));
  net.add(2, 0, MessageWay::Received, floats(200));
  EXPECT_FALSE(net.tick(0, 1));
  const auto text = net.tick(2, 1);
  EXPECT_EQ(text,
            "The messages of two ranks do not match. rank 0 sends 100 ncclFloat32 as its 2nd message to rank 2; rank 2 "
            "receives 200 ncclFloat32 as its 2nd from rank 0. Both must be of the same number of bytes");
  EXPECT_EQ(net.tick(0, 1), text);
  EXPECT_EQ(net.tick(1, 1), text);
}

TEST(MessageExchange, MessagesOfOneNumberOfBytesAreAlike) {
  MessageNet net(2);
  for (int i = 0; i < 40; ++i) {
    net.add(0, 1, MessageWay::Sent, floats(4));
    net.add(1, 0, MessageWay::Received, bytes(16));
    EXPECT_FALSE(net.tick(0, 2 * i));
    EXPECT_FALSE(net.tick(1, 2 * i));
  }
}

TEST(MessageExchange, ComparesWhatIsReceivedLater) {
  MessageNet net(2);
  net.add(0, 1, MessageWay::Sent, floats(4));
  EXPECT_FALSE(net.tick(0, 1));
  EXPECT_FALSE(net.tick(1, 1));
  net.add(1, 0, MessageWay::Received, floats(5));
  EXPECT_TRUE(net.tick(1, 1));
}

TEST(MessageExchange, KnowsOfADifferenceThatIsNotKeptAnyMore) {
  MessageNet net(2);
  for (int i = 0; i < 6; ++i) {
    net.add(0, 1, MessageWay::Sent, floats(4));
    net.add(1, 0, MessageWay::Received, floats(i == 0 ? 5 : 4));
  }
  EXPECT_FALSE(net.tick(0, 1));
  const auto text = net.tick(1, 1);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("One of the first 2 that rank 0 has sent to rank 1"), std::string::npos) << *text;
}

TEST(MessageExchange, WhoeverLeavesAsksThoseItHadMessagesWith) {
  MessageNet net(3);
  net.exchange(0, 1, floats(4));
  EXPECT_FALSE(net.at(0).settled());
  EXPECT_TRUE(net.at(2).settled());
  net.ask(0);
  EXPECT_FALSE(net.answered(0));
  EXPECT_FALSE(net.tick(1, 1));
  EXPECT_FALSE(net.tick(2, 1));
  EXPECT_FALSE(net.tick(0, 1));
  EXPECT_TRUE(net.answered(0));
  EXPECT_TRUE(net.at(0).settled());
  EXPECT_TRUE(net.at(1).settled());
}

TEST(MessageExchange, SaysOfAFewPeersAtATimeAndOfAllInTurn) {
  MessageNet net(9);
  for (int peer = 1; peer < 9; ++peer) net.exchange(0, peer, floats(4));
  for (int second = 1; second < 9; ++second) EXPECT_FALSE(net.tick(0, second));
  EXPECT_EQ(net.words, 3);
  for (int peer = 1; peer < 9; ++peer) {
    EXPECT_FALSE(net.tick(peer, 1));
    EXPECT_TRUE(net.at(peer).settled()) << peer;
  }
}

TEST(MessageExchange, WhatGraphsReplayIsNotCompared) {
  MessageNet net(2);
  net.exchange(0, 1, floats(4));
  net.at(0).log().giveUp();
  net.exchange(0, 1, floats(4));
  EXPECT_FALSE(net.tick(0, 1));
  EXPECT_TRUE(net.at(0).settled());
  EXPECT_EQ(net.words, 0);
}

}  // namespace
}  // namespace tutti::comm
