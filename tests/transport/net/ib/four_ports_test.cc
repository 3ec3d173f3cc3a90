#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/net/ib/failover_fixture.h"

namespace tutti::net::ib {
namespace {

using namespace test;

/// Two NICs of two ports on either side, fused into one device.
class IbFourPorts : public IbFailover {
 protected:
  void SetUp() override {
    plug({twoPorts("a0", 1), twoPorts("a1", 2), twoPorts("b0", 3), twoPorts("b1", 4)});
    allowLog("Got non-fatal async event");
  }
  static FakeNic twoPorts(const std::string& name, int last) {
    FakeNic nic = roceNic(name, last);
    nic.ports.push_back(roceNic(name, 100 + last).ports.front());
    return nic;
  }
  /// Numbers of the ports that queue pairs of a NIC are on.
  static std::vector<int> portsOf(const std::string& nic) {
    std::vector<int> ports;
    for (const ibv_qp_attr& one : tuttiFakeVerbs()->readyToReceive(nic)) ports.push_back(one.ah_attr.port_num);
    return ports;
  }
};

TEST_F(IbFourPorts, ShareTheQueuePairsOfAConnection) {
  fuse(with(2), 4);
  for (const char* nic : {"a0", "a1", "b0", "b1"}) EXPECT_EQ(portsOf(nic), (std::vector<int>{1, 2, 1, 2})) << nic;
}

TEST_F(IbFourPorts, CarryMessagesOfAllSizesWhetherTheySplitOrNot) {
  for (const auto& [queuePairs, splits] : {std::pair{1, false}, {1, true}, {3, false}, {3, true}}) {
    SCOPED_TRACE(std::to_string(queuePairs) + (splits ? " that split" : " in turn"));
    fuse(with(queuePairs, splits), 4);
    for (const std::size_t bytes : {0u, 1u, 127u, 128u, 129u, 511u, 512u, 513u, 8193u, 1u << 20})
      exchange(bytes, static_cast<unsigned>(bytes % 97 + 1));
    std::set<std::uint32_t> used;
    for (const FakeWork& one : tuttiFakeVerbs()->work()) {
      if (one.nic[0] == 'a' && one.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) used.insert(one.queuePair);
    }
    EXPECT_GE(used.size(), 2u) << "of each NIC, which number theirs alike";
  }
}

TEST_F(IbFourPorts, CarryThemToADeviceOfOnePortAndBack) {
  for (const auto& [sends, recvs] : {std::pair{4, 1}, {1, 4}, {4, 2}, {2, 4}}) {
    for (const bool splits : {false, true}) {
      SCOPED_TRACE(std::to_string(sends) + " to " + std::to_string(recvs));
      fuse(with(2, splits), with(2, splits), sends, recvs);
      IbFlow flow(*pair, {.window = 64, .group = 3, .bytes = 900});
      flow.run(150);
      flow.finish();
    }
  }
}

/// Messages come, and are acknowledged, in whatever order between queue pairs.
TEST_F(IbFourPorts, BearCompletionsInAnyOrderBetweenQueuePairs) {
  for (const auto& [queuePairs, splits] : {std::pair{2, false}, {2, true}}) {
    for (const std::size_t group : {std::size_t{1}, std::size_t{8}}) {
      SCOPED_TRACE(std::to_string(group) + (splits ? " that split" : " in turn"));
      fuse(with(queuePairs, splits), 4);
      IbFlow flow(*pair, {.window = 48, .group = group, .bytes = 1500});
      tuttiFakeVerbs()->deliverByThread();
      flow.run(80);
      flow.finish(40);
      tuttiFakeVerbs()->hold(false);
    }
  }
}

TEST_F(IbFourPorts, BearThatTheLastQueuePairIsAlwaysFirst) {
  for (const bool last : {false, true}) {
    SCOPED_TRACE(last ? "the last" : "the first");
    fuse(with(2), 4);
    IbFlow flow(*pair, {.window = 32, .group = 2, .bytes = 300});
    flow.run(10);
    tuttiFakeVerbs()->hold(true);
    for (int i = 0; i < 3000; ++i) {
      EXPECT_TRUE(flow.turn());
      tuttiFakeVerbs()->deliverOne(last);
    }
    EXPECT_GT(flow.received(), 200u);
    tuttiFakeVerbs()->hold(false);
    flow.finish();
  }
}

/// A later message is done before an earlier one, at both ends.
TEST_F(IbFourPorts, FinishMessagesInTheOrderInWhichTheyCome) {
  fuse(with(2), 4);
  IbBuffer& from = outgoing(4000, 3);
  IbBuffer& to = incoming(4000);
  std::vector<void*> received, sent;
  for (std::size_t i = 0; i < 4; ++i) {
    received.push_back(pair->recv({to.data.data() + 1000 * i, 1000, 0, to.registration}));
  }
  tuttiFakeVerbs()->hold(true);
  for (std::size_t i = 0; i < 4; ++i) {
    sent.push_back(pair->send({from.data.data() + 1000 * i, 900 + i, 0, from.registration}));
  }
  const auto over = [](plugin::Net& net, void*& request, std::vector<int>& sizes) {
    if (request == nullptr || !IbPair::done(net, request, sizes)) return false;
    request = nullptr;
    return true;
  };
  // Of eight queue pairs messages take four in turn, one of each port. The second half of them comes before the first.
  std::vector<std::size_t> order;
  std::vector<int> sizes(1, -1);
  while (tuttiFakeVerbs()->deliverOne(true)) {
    for (std::size_t i = 0; i < 4; ++i) {
      if (!over(*b->net, received[i], sizes)) continue;
      EXPECT_EQ(sizes.front(), static_cast<int>(900 + i));
      order.push_back(i);
    }
    for (void*& one : sent) over(*a->net, one, sizes);
  }
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 3, 0, 2}));
  for (void* one : sent) EXPECT_EQ(one, nullptr);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(1000 * i);
    EXPECT_TRUE(std::equal(from.data.begin() + at, from.data.begin() + at + 900, to.data.begin() + at)) << i;
  }
}

TEST_F(IbFourPorts, LoseOneToAPortAndTwoToANic) {
  allowLog("goes on without");
  expectLog("Got async fatal event");
  fuse(with(), 4);
  IbFlow flow(*pair, {});
  flow.run(50);
  tuttiFakeVerbs()->portEvent("a0", IBV_EVENT_PORT_ERR, 2);
  runUntilBothSaid(flow, "over 3 of 4 queue pairs");
  EXPECT_TRUE(
      logged("sending to a rank of a test: goes on without a0:2 to b0:2, over 3 of 4 queue pairs, "
             "a0:1 to b0:1, a1:1 to b1:1, a1:2 to b1:2."));
  flow.run(50);
  tuttiFakeVerbs()->portEvent("b1", IBV_EVENT_DEVICE_FATAL, 0);
  runUntilBothSaid(flow, "over 1 of 4 queue pairs");
  EXPECT_TRUE(
      logged("receiving from a rank of a test: goes on without b1:1 to a1:1, b1:2 to a1:2, over 1 of 4 queue "
             "pairs, b0:1 to a0:1."));
  flow.finish();
}

}  // namespace
}  // namespace tutti::net::ib
