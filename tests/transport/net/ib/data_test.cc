#include <algorithm>
#include <deque>
#include <set>

#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::net::ib {
namespace {

using namespace test;

const std::vector<std::size_t> kSizes{0, 1, 127, 128, 129, 8192, 8193, 1 << 20, 0, 3};

class IbData : public IbPairTest {
 protected:
  void exchangeAll() {
    for (std::size_t i = 0; i < kSizes.size(); ++i) exchange(kSizes[i], static_cast<unsigned>(i + 1));
  }
  static Params with(int queuePairs, bool splits) {
    Params params = verbsParams();
    params.ib.queuePairs = queuePairs;
    params.ib.splitData = splits;
    return params;
  }
  /// Messages of a few bytes with as many under way as there are rows.
  void stream(std::size_t messages, std::size_t window) {
    IbBuffer& from = outgoing(messages);
    IbBuffer& to = incoming(messages);
    std::deque<std::pair<void*, void*>> under;
    for (std::size_t i = 0; i < messages; ++i) {
      if (under.size() == window) finishFirst(under);
      const std::size_t bytes = i % 5 == 4 ? 0 : 1;
      void* const received = pair->recv({to.data.data() + i, 1, 0, to.registration});
      under.emplace_back(pair->send({from.data.data() + i, bytes, 0, from.registration}), received);
      if (bytes == 0) from.data[i] = 0xee;
    }
    while (!under.empty()) finishFirst(under);
    EXPECT_TRUE(std::equal(from.data.begin(), from.data.end() - 1, to.data.begin()));
  }
  void finishFirst(std::deque<std::pair<void*, void*>>& under) {
    pair->finishSend(under.front().first);
    pair->finishRecv(under.front().second);
    under.pop_front();
  }
};

TEST_F(IbData, CarriesMessagesOfAllSizes) {
  connect();
  exchangeAll();
}

TEST_F(IbData, CarriesThemOverSeveralQueuePairsWhetherTheySplitOrNot) {
  for (const int queuePairs : {1, 2, 3, 4}) {
    for (const bool splits : {false, true}) {
      SCOPED_TRACE(std::to_string(queuePairs) + (splits ? " that split" : " in turn"));
      connect(with(queuePairs, splits));
      exchangeAll();
      pair.reset();
    }
  }
}

TEST_F(IbData, CarriesThemBetweenDevicesOfDifferentlyManyPorts) {
  for (const auto& [sends, receives] : {std::pair{true, false}, {false, true}, {true, true}}) {
    for (const int queuePairs : {1, 2, 3}) {
      for (const bool splits : {false, true}) {
        SCOPED_TRACE(std::to_string(sends) + std::to_string(receives) + std::to_string(queuePairs) +
                     (splits ? "s" : ""));
        connect(with(queuePairs, splits), with(queuePairs, splits), sends, receives);
        exchangeAll();
        pair.reset();
      }
    }
  }
}

TEST_F(IbData, FollowsTheSenderInWhetherItSplits) {
  connect(with(3, true), with(1, false));
  exchangeAll();
  pair.reset();
  connect(with(3, false), with(1, true));
  exchangeAll();
}

TEST_F(IbData, CutsAMessageIntoWholeLinesOnAllQueuePairs) {
  connect(with(3, true));
  const std::size_t before = tuttiFakeVerbs()->work().size();
  exchange(1000, 5);
  std::vector<std::uint64_t> parts;
  std::set<std::uint32_t> used;
  const auto work = tuttiFakeVerbs()->work();
  for (std::size_t i = before; i < work.size(); ++i) {
    if (work[i].opcode != IBV_WR_RDMA_WRITE_WITH_IMM) continue;
    parts.push_back(work[i].bytes);
    used.insert(work[i].queuePair);
  }
  EXPECT_EQ(parts, (std::vector<std::uint64_t>{384, 384, 232}));
  EXPECT_EQ(used.size(), 3u);
}

TEST_F(IbData, UsesQueuePairsInTurnForWholeMessages) {
  connect(with(3, false));
  const std::size_t before = tuttiFakeVerbs()->work().size();
  for (unsigned i = 1; i <= 3; ++i) exchange(1000, i);
  std::set<std::uint32_t> used;
  const auto work = tuttiFakeVerbs()->work();
  for (std::size_t i = before; i < work.size(); ++i) {
    if (work[i].opcode == IBV_WR_RDMA_WRITE_WITH_IMM) used.insert(work[i].queuePair);
  }
  EXPECT_EQ(used.size(), 3u);
}

TEST_F(IbData, CarriesManyMessagesBeyondTheEndOfTheRing) {
  for (const std::size_t window : {1u, 7u, 64u}) {
    connect();
    stream(300, window);
    in.clear();
    out.clear();
    pair.reset();
  }
}

TEST_F(IbData, CarriesManyMessagesOverUnequalPorts) {
  connect(with(2, false), with(2, false), true, false);
  stream(300, 64);
}

TEST_F(IbData, CarriesManyMessagesThatAThreadDelivers) {
  connect(with(3, true), with(3, true), true, true);
  tuttiFakeVerbs()->deliverByThread();
  stream(300, 32);
  tuttiFakeVerbs()->hold(false);
}

TEST_F(IbData, BearsAnyOrderBetweenQueuePairs) {
  for (const bool last : {false, true}) {
    connect(with(4, true));
    IbBuffer& from = outgoing(5000, 9);
    IbBuffer& to = incoming(5000);
    void* const received = pair->recv(to.place(5000));
    tuttiFakeVerbs()->hold(true);
    void* const sent = pair->send(from.place(5000));
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(IbPair::done(*b->net, received)) << "a quarter is missing";
      EXPECT_TRUE(tuttiFakeVerbs()->deliverOne(last));
    }
    EXPECT_FALSE(IbPair::done(*b->net, received));
    EXPECT_FALSE(IbPair::done(*a->net, sent));
    tuttiFakeVerbs()->hold(false);
    pair->finishSend(sent);
    EXPECT_EQ(pair->finishRecv(received), std::vector<int>{5000});
    EXPECT_TRUE(std::equal(from.data.begin(), from.data.end() - 1, to.data.begin()));
    in.clear();
    out.clear();
    pair.reset();
  }
}

TEST_F(IbData, AnnouncesLongMessagesApartWherePacketsOvertakeEachOther) {
  plug({infinibandNic("a0", 1), infinibandNic("b0", 3)});
  connect();
  const auto kindsOf = [&](std::size_t bytes) {
    const std::size_t before = tuttiFakeVerbs()->work().size();
    exchange(bytes, 3);
    std::string kinds;
    const auto work = tuttiFakeVerbs()->work();
    for (std::size_t i = before; i < work.size(); ++i) {
      if (work[i].nic == "a0")
        kinds += (work[i].opcode == IBV_WR_RDMA_WRITE ? "W" : "I") + std::to_string(work[i].bytes);
    }
    return kinds;
  };
  EXPECT_EQ(kindsOf(8192), "I8192");
  EXPECT_EQ(kindsOf(8193), "W8193I0");
}

TEST_F(IbData, AnnouncesThemWithTheDataOnEthernet) {
  connect();
  exchange(100000, 3);
  EXPECT_EQ(tuttiFakeVerbs()->work().back().bytes, 100000u);
}

TEST_F(IbData, WritesGrantsInlineWhereItIsTold) {
  Params params = verbsParams();
  params.ib.useInline = true;
  connect(params);
  exchangeAll();
  const auto work = tuttiFakeVerbs()->work();
  EXPECT_TRUE(
      std::any_of(work.begin(), work.end(), [](const FakeWork& one) { return one.inlined && one.nic == "b0"; }));
}

TEST_F(IbData, TellsOfFewGrants) {
  connect();
  stream(300, 1);
  int told = 0;
  for (const FakeWork& one : tuttiFakeVerbs()->work()) told += one.nic == "b0" && one.signaled ? 1 : 0;
  EXPECT_GE(told, 1);
  EXPECT_LE(told, 300 / 8);
}

TEST_F(IbData, HasNoRequestForASendThatNobodyGranted) {
  connect();
  IbBuffer& from = outgoing(8);
  EXPECT_EQ(pair->trySend(from.place(8)), nullptr);
}

TEST_F(IbData, HasNoRequestForMoreReceivesThanRows) {
  connect();
  IbBuffer& from = outgoing(8);
  IbBuffer& to = incoming(8);
  std::vector<void*> received;
  for (int i = 0; i < 64; ++i) {
    received.push_back(pair->recv(to.place(8)));
    ASSERT_NE(received.back(), nullptr) << i;
  }
  EXPECT_EQ(pair->recv(to.place(8)), nullptr);
  pair->finishSend(pair->send(from.place(8)));
  pair->finishRecv(received.front());
  received.front() = pair->recv(to.place(8));
  EXPECT_NE(received.front(), nullptr) << "a row is free again";
  EXPECT_EQ(pair->recv(to.place(8)), nullptr);
}

TEST_F(IbData, RefusesAMessageWhoseLengthIsNoInt) {
  expectLog("A message of 2147483648 bytes is longer than the 2147483647");
  connect();
  IbBuffer& from = outgoing(8);
  plugin::NetBuffer message = from.place(8);
  message.bytes = std::size_t{1} << 31;
  EXPECT_EQ(a->net->isend(pair->sender, message).status().code(), ncclInvalidArgument);
  exchange(100, 1);
}

TEST_F(IbData, RefusesAMessageThatIsLongerThanItsPlace) {
  expectLog("is longer than the 7 bytes");
  connect();
  IbBuffer& from = outgoing(8);
  IbBuffer& to = incoming(8);
  pair->recv(to.place(7));
  Status status;
  EXPECT_TRUE(until([&] {
    const auto sent = a->net->isend(pair->sender, from.place(8));
    status = sent.status();
    return !sent.ok();
  }));
  EXPECT_EQ(status.code(), ncclInvalidUsage);
  EXPECT_EQ(to.data, std::vector<unsigned char>(9, 0xee)) << "nothing was written";
}

}  // namespace
}  // namespace tutti::net::ib
