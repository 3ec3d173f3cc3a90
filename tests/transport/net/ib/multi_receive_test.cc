#include <algorithm>
#include <numeric>

#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::net::ib {
namespace {

using namespace test;

class IbMultiReceive : public IbPairTest {
 protected:
  static constexpr std::size_t kEach = 1000;
  /// Of `count` messages the i-th has tag 10 + i, and i * 111 bytes, on both sides.
  void post(std::size_t count) {
    from = &outgoing(kEach * count, 3);
    to = &incoming(kEach * count);
    std::vector<plugin::NetBuffer> places;
    for (std::size_t i = 0; i < count; ++i) places.push_back(placeOf(*to, i, kEach));
    received = pair->recv(places);
  }
  plugin::NetBuffer placeOf(IbBuffer& buffer, std::size_t i, std::size_t bytes) {
    return {buffer.data.data() + i * kEach, bytes, static_cast<int>(10 + i), buffer.registration};
  }
  void* send(std::size_t i) { return pair->send(placeOf(*from, i, i * 111)); }
  void expectAll(std::size_t count) {
    const std::vector<int> sizes = pair->finishRecv(received, count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(sizes[i], static_cast<int>(i * 111));
      const auto at = static_cast<std::ptrdiff_t>(i * kEach);
      const auto sent = from->data.begin() + at;
      EXPECT_TRUE(std::equal(sent, sent + static_cast<std::ptrdiff_t>(i * 111), to->data.begin() + at)) << i;
      EXPECT_EQ(to->data[i * kEach + i * 111], 0xee) << i;
    }
  }
  void permute(const Params& params, bool fused) {
    connect(params, params, fused, false);
    for (std::size_t count = 1; count <= 8; ++count) {
      std::vector<std::size_t> order(count);
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t turn = 0; turn < count; ++turn) {
        post(count);
        std::rotate(order.begin(), order.begin() + 1, order.end());
        if (turn % 2 == 1) std::reverse(order.begin(), order.end());
        std::vector<void*> sent;
        for (const std::size_t i : order) sent.push_back(send(i));
        for (void* one : sent) pair->finishSend(one);
        expectAll(count);
      }
    }
    in.clear();
    out.clear();
    pair.reset();
  }
  IbBuffer* from = nullptr;
  IbBuffer* to = nullptr;
  void* received = nullptr;
};

TEST_F(IbMultiReceive, TakesOneToEightMessagesInAnyOrderOfTags) {
  permute(verbsParams(), false);
}

TEST_F(IbMultiReceive, TakesThemOverSplitQueuePairsAndUnequalPorts) {
  Params params = verbsParams();
  params.ib.queuePairs = 2;
  params.ib.splitData = true;
  permute(params, true);
}

TEST_F(IbMultiReceive, WritesNothingBeforeAllMessagesOfARowAreThere) {
  connect();
  post(3);
  const std::size_t before = tuttiFakeVerbs()->work().size();
  void* const third = send(2);
  void* const first = send(0);
  EXPECT_FALSE(IbPair::done(*a->net, third));
  EXPECT_EQ(tuttiFakeVerbs()->work().size(), before);
  EXPECT_EQ(pair->trySend(placeOf(*from, 2, 1)), nullptr) << "its only grant is taken";
  void* const second = send(1);
  EXPECT_GT(tuttiFakeVerbs()->work().size(), before);
  for (void* one : {first, second, third}) pair->finishSend(one);
  expectAll(3);
}

TEST_F(IbMultiReceive, GivesEqualTagsInTheOrderOfTheirGrants) {
  connect();
  IbBuffer& sent = outgoing(3, 7);
  IbBuffer& got = incoming(3);
  std::vector<plugin::NetBuffer> places;
  for (std::size_t i = 0; i < 3; ++i) places.push_back({got.data.data() + i, 1, 5, got.registration});
  void* const request = pair->recv(places);
  std::vector<void*> all;
  for (std::size_t i = 0; i < 3; ++i) all.push_back(pair->send({sent.data.data() + i, 1, 5, sent.registration}));
  for (void* one : all) pair->finishSend(one);
  EXPECT_EQ(pair->finishRecv(request, 3), (std::vector<int>{1, 1, 1}));
  EXPECT_TRUE(std::equal(sent.data.begin(), sent.data.end() - 1, got.data.begin()));
}

TEST_F(IbMultiReceive, RefusesReceivesOfNoneAndOfNine) {
  connect();
  expectLog("A receive is of 1 to 8 messages");
  allowLog("A receive is of 1 to 8 messages");
  IbBuffer& got = incoming(8);
  const std::vector<plugin::NetBuffer> nine(9, got.place(1));
  EXPECT_EQ(b->net->irecv(pair->receiver, nine).status().code(), ncclInvalidArgument);
  EXPECT_EQ(b->net->irecv(pair->receiver, {}).status().code(), ncclInvalidArgument);
}

/// A row is free again as soon as its messages are there, whenever its request is tested.
TEST_F(IbMultiReceive, KnowsTheLengthsOfARowThatIsTestedAfterTheRingWentRound) {
  connect();
  IbBuffer& sent = outgoing(300, 7);
  IbBuffer& got = incoming(300);
  const auto receive = [&] {
    const std::vector<plugin::NetBuffer> two{{got.data.data(), 100, 1, got.registration},
                                             {got.data.data() + 100, 100, 2, got.registration}};
    return pair->recv(two);
  };
  const auto sendBoth = [&](std::size_t first, std::size_t second) {
    void* const one = pair->send({sent.data.data(), first, 1, sent.registration});
    void* const other = pair->send({sent.data.data(), second, 2, sent.registration});
    pair->finishSend(one);
    pair->finishSend(other);
  };
  void* const early = receive();
  sendBoth(11, 12);
  for (int i = 0; i < 64; ++i) {
    void* const later = receive();
    ASSERT_NE(later, nullptr) << i;
    sendBoth(31, 32);
    EXPECT_EQ(pair->finishRecv(later, 2), (std::vector<int>{31, 32}));
  }
  EXPECT_EQ(pair->finishRecv(early, 2), (std::vector<int>{11, 12}));
}

}  // namespace
}  // namespace tutti::net::ib
