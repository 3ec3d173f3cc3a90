#include <cerrno>
#include <string>
#include <vector>

#include "transport/net/ib/failover_fixture.h"
#include "transport/net/ib/ib_lines.h"

namespace tutti::net::ib {
namespace {

using namespace test;

const std::string kSends = "a rank of a test, was sending to a rank of a test, from a0:1 (GID 3 ::ffff:10.0.0.1), ";
const std::string kReceives =
    "a rank of a test, was receiving from a rank of a test, from b0:1 (GID 3 ::ffff:10.0.0.3), ";
const std::string kToB0 = "to b0:1 (GID 3 ::ffff:10.0.0.3), ";
const std::string kToA0 = "to a0:1 (GID 3 ::ffff:10.0.0.1), ";
const std::string kFull =
    " The NIC's queue is full, though it has room for all that this library posts at once: completions were lost, or "
    "its driver has made a shorter queue than was asked for. Look at dmesg, and update firmware and driver";

std::string pairNumber(int number) {
  return "queue pair " + std::to_string(number);
}

class IbFullQueue : public IbPairTest {
 protected:
  /// A NIC that is stuck is noticed after 67 ms.
  static Params quick() {
    Params params = verbsParams();
    params.ib.timeout = 12;
    params.ib.retryCount = 0;
    return params;
  }
  /// Of a receiver: so many grants go and come to no end, and all but the last ones are answered.
  void grant(int answered, int open) {
    tuttiFakeVerbs()->delayAcknowledgements("b0", true);
    for (int i = 0; i < answered; ++i) exchange(8, static_cast<unsigned>(i + 1));
    IbBuffer& to = incoming(8);
    for (int i = 0; i < open; ++i) ASSERT_NE(pair->recv(to.place(8)), nullptr) << i;
  }
  /// NICs of which one has less room than it says.
  void plugShort(const std::string& name, std::uint32_t sends, std::uint32_t receives) {
    auto nics = fourNics();
    for (FakeNic& nic : nics) {
      if (nic.name != name) continue;
      nic.sendRoom = sends;
      nic.receiveRoom = receives;
    }
    plug(nics);
  }
  /// The error of the first receive that is refused.
  Status failureOfRecvs(std::span<const plugin::NetBuffer> places) {
    Status status;
    EXPECT_TRUE(until([&] {
      status = b->net->irecv(pair->receiver, places).status();
      return !status.ok();
    }));
    return status;
  }
  /// What is said of the fifth of five receives, of which the NIC has room for four, by the call that fails then.
  std::vector<std::string> fifthOfFourReceives(const std::string& call, std::uint32_t sends, std::uint32_t receives) {
    allowLog("Call to " + call + " failed");
    plugShort("b0", sends, receives);
    connect();
    IbBuffer& to = incoming(8);
    for (int i = 0; i < 4; ++i) EXPECT_NE(pair->recv(to.place(8)), nullptr);
    const plugin::NetBuffer place = to.place(8);
    IbLines lines;
    EXPECT_EQ(b->net->irecv(pair->receiver, {&place, 1}).status().code(), ncclSystemError);
    return lines.take();
  }
  static std::vector<std::string> whatIsSaidOfFiveReceives(const std::string& call) {
    return {"ERROR NET/IB : Call to " + call + " failed with error Cannot allocate memory (12) while " + kReceives +
            pairNumber(17) + ", " + kToA0 + pairNumber(17) + "; open: 5 receives with room for 40 bytes." + kFull};
  }
};

/// All that was granted has come, so no request is open whose test would take the completions.
TEST_F(IbFullQueue, ReceivesAgainWhenGrantsAreAcknowledgedLate) {
  connect();
  grant(128, 0);
  IbBuffer& to = incoming(8);
  const Deadline deadline = Deadline::in(50ms);
  while (!deadline.expired()) EXPECT_EQ(pair->recv(to.place(8)), nullptr) << "128 grants are under way";
  tuttiFakeVerbs()->delayAcknowledgements("b0", false);
  void* received = nullptr;
  EXPECT_TRUE(until([&] { return (received = pair->recv(to.place(8))) != nullptr; }));
  IbBuffer& from = outgoing(8, 7);
  pair->finishSend(pair->send(from.place(8)));
  EXPECT_EQ(pair->finishRecv(received), std::vector<int>{8});
  EXPECT_EQ(to.data[3], from.data[3]);
}

TEST_F(IbFullQueue, HearsOfAPeerThatIsGoneWhileItHasNoRoom) {
  allowLog("Call to ibv_post_send failed");
  connect();
  grant(127, 1);
  const plugin::NetBuffer place = incoming(8).place(8);
  EXPECT_EQ(pair->recv(place), nullptr);
  tuttiFakeVerbs()->failCall("ibv_post_send", 1, EIO);
  EXPECT_EQ(a->net->isend(pair->sender, outgoing(8).place(8)).status().code(), ncclSystemError);
  out.clear();
  pair->closeSend();
  EXPECT_EQ(failureOfRecvs({&place, 1}).code(), ncclRemoteError);
}

TEST_F(IbFullQueue, EndsWithWhatIsOpenWhereGrantsComeToNoEnd) {
  allowLog("No grant has come to its end");
  connect(quick());
  grant(100, 28);
  const plugin::NetBuffer place = incoming(8).place(8);
  IbLines lines;
  const auto begin = SteadyClock::now();
  EXPECT_EQ(failureOfRecvs({&place, 1}).code(), ncclSystemError);
  EXPECT_GE(secondsSince(begin), 0.06);
  const std::vector<std::string> one{
      "ERROR NET/IB : No grant has come to its end for N s while " + kReceives + pairNumber(17) + ", " + kToA0 +
      pairNumber(17) +
      ": its NIC has acknowledged none of 128 and failed none; open: 28 receives with room for 224 bytes. It has lost "
      "completions, or is stuck: look at dmesg, and update its firmware and driver"};
  EXPECT_EQ(lines.take(), one);
  EXPECT_EQ(b->net->irecv(pair->receiver, {&place, 1}).status().code(), ncclSystemError) << "errors stick";
  EXPECT_EQ(lines.take(), std::vector<std::string>());
}

/// A row of eight takes nine work requests of a queue of 256.
TEST_F(IbFullQueue, SendsAgainWhenMessagesAreAcknowledgedLate) {
  connect();
  IbFlow flow(*pair, {.window = 64, .group = 8, .bytes = 40});
  tuttiFakeVerbs()->delayAcknowledgements("a0", true);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(flow.turn());
  EXPECT_EQ(flow.received(), 256u / 9);
  tuttiFakeVerbs()->delayAcknowledgements("a0", false);
  flow.finish();
}

TEST_F(IbFullQueue, NamesASendQueueThatIsShorterThanItsNicSaid) {
  allowLog("Call to ibv_post_send failed");
  plugShort("a0", 4, 0);
  connect();
  tuttiFakeVerbs()->delayAcknowledgements("a0", true);
  IbBuffer& from = outgoing(8);
  IbBuffer& to = incoming(8);
  std::vector<void*> received;
  for (int i = 0; i < 5; ++i) received.push_back(pair->recv(to.place(8)));
  IbLines lines;
  for (int i = 0; i < 4; ++i) ASSERT_NE(pair->send(from.place(8)), nullptr);
  EXPECT_EQ(a->net->isend(pair->sender, from.place(8)).status().code(), ncclSystemError);
  const std::vector<std::string> one{
      "ERROR NET/IB : Call to ibv_post_send failed with error Cannot allocate memory (12) while " + kSends +
      pairNumber(17) + ", " + kToB0 + pairNumber(17) + "; open: 5 messages of 40 bytes." + kFull};
  EXPECT_EQ(lines.take(), one);
  out.clear();
  pair->closeSend();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pair->finishRecv(received[static_cast<std::size_t>(i)]), std::vector<int>{8});
  Status status;
  EXPECT_TRUE(until([&] { return !(status = b->net->test(received[4], {}).status()).ok(); })) << "nobody hangs";
  EXPECT_EQ(status.code(), ncclRemoteError);
}

/// The first messages of the row are posted by then.
TEST_F(IbFullQueue, NamesASendQueueThatIsFullWithinARow) {
  allowLog("Call to ibv_post_send failed");
  plugShort("a0", 4, 0);
  connect();
  tuttiFakeVerbs()->delayAcknowledgements("a0", true);
  IbBuffer& from = outgoing(64);
  IbBuffer& to = incoming(64);
  std::vector<plugin::NetBuffer> places;
  for (int i = 0; i < 8; ++i) places.push_back({to.data.data() + 8 * i, 8, i, to.registration});
  void* const received = pair->recv(places);
  IbLines lines;
  for (int i = 0; i < 7; ++i) ASSERT_NE(pair->send({from.data.data() + 8 * i, 8, i, from.registration}), nullptr);
  const plugin::NetBuffer last{from.data.data() + 56, 8, 7, from.registration};
  EXPECT_EQ(a->net->isend(pair->sender, last).status().code(), ncclSystemError);
  const std::vector<std::string> one{
      "ERROR NET/IB : Call to ibv_post_send failed with error Cannot allocate memory (12) while " + kSends +
      pairNumber(17) + ", " + kToB0 + pairNumber(17) + "; open: 8 messages of 64 bytes." + kFull};
  EXPECT_EQ(lines.take(), one);
  out.clear();
  pair->closeSend();
  Status status;
  EXPECT_TRUE(until([&] { return !(status = b->net->test(received, {}).status()).ok(); })) << "nobody hangs";
  EXPECT_EQ(status.code(), ncclRemoteError);
}

TEST_F(IbFullQueue, NamesAReceiveQueueThatIsShorterThanItsNicSaid) {
  EXPECT_EQ(fifthOfFourReceives("ibv_post_recv", 0, 4), whatIsSaidOfFiveReceives("ibv_post_recv"));
}

TEST_F(IbFullQueue, NamesAQueueOfGrantsThatIsShorterThanItsNicSaid) {
  EXPECT_EQ(fifthOfFourReceives("ibv_post_send", 4, 0), whatIsSaidOfFiveReceives("ibv_post_send"));
}

struct Refusal {
  int error;
  const char* text;
};
const Refusal kRefusals[] = {
    {ENOMEM,
     "Cannot allocate memory (12)|. The NIC's queue is full, though it has room for all that this library posts at "
     "once: completions were lost, or its driver has made a shorter queue than was asked for. Look at dmesg, and "
     "update firmware and driver"},
    {EINVAL,
     "Invalid argument (22)|. The queue pair takes no work in the state that it is in, or not of this kind: an "
     "earlier message or dmesg may say what happened to it"},
    {EIO, "Input/output error (5)|. The NIC has failed, was reset, or was taken away: look at dmesg"},
    {ENODEV, "No such device (19)|. The NIC has failed, was reset, or was taken away: look at dmesg"},
    {EOPNOTSUPP,
     "Operation not supported (95)|. The NIC or its driver cannot do this: update firmware and driver, or leave the "
     "NIC out with NCCL_IB_HCA"},
    {ENOSYS,
     "Function not implemented (38)|. The NIC or its driver cannot do this: update firmware and driver, or leave the "
     "NIC out with NCCL_IB_HCA"},
    {EAGAIN,
     "Resource temporarily unavailable (11)|. It is the driver that refuses: look at dmesg, and update firmware and "
     "driver"},
};

/// Whatever call refuses, with whatever error: one line with both ranks, both ports, what is open, and a remedy.
TEST_F(IbFullQueue, NamesEveryRefusalOfEveryPost) {
  allowLog("Call to ibv_post_");
  connect();
  int number = 17;
  for (const Refusal& one : kRefusals) {
    const std::string text = one.text;
    const std::string error = text.substr(0, text.find('|'));
    const std::string remedy = text.substr(text.find('|') + 1);
    const auto line = [&](const std::string& call, const std::string& deed, const std::string& to,
                          const std::string& open) {
      return std::vector<std::string>{"ERROR NET/IB : Call to " + call + " failed with error " + error + " while " +
                                      deed + pairNumber(number) + ", " + to + pairNumber(number) + "; open: " + open +
                                      remedy};
    };
    for (const bool grants : {false, true}) {
      const std::string call = grants ? "ibv_post_send" : "ibv_post_recv";
      SCOPED_TRACE(call + " of a receiver: " + error);
      IbPair refused(*a->net, 0, *b->net, 0);
      IbBuffer to(*b->net, refused.receiver, 100);
      const plugin::NetBuffer place = to.place(100);
      ++number;
      IbLines lines;
      tuttiFakeVerbs()->failCall(call, 1, one.error);
      EXPECT_EQ(b->net->irecv(refused.receiver, {&place, 1}).status().code(), ncclSystemError);
      EXPECT_EQ(lines.take(), line(call, kReceives, kToA0, "1 receive with room for 100 bytes"));
    }
    SCOPED_TRACE("ibv_post_send of a sender: " + error);
    IbPair refused(*a->net, 0, *b->net, 0);
    IbBuffer to(*b->net, refused.receiver, 100);
    IbBuffer from(*a->net, refused.sender, 100);
    ++number;
    refused.recv(to.place(100));
    IbLines lines;
    tuttiFakeVerbs()->failCall("ibv_post_send", 1, one.error);
    EXPECT_EQ(a->net->isend(refused.sender, from.place(60)).status().code(), ncclSystemError);
    EXPECT_EQ(lines.take(), line("ibv_post_send", kSends, kToB0, "1 message of 60 bytes"));
  }
}

/// With another port a connection goes on.
class IbFullQueueOfPorts : public IbFailover {};

TEST_F(IbFullQueueOfPorts, LeavesAPortOutWhoseGrantsComeToNoEnd) {
  allowLog("goes on without b0:1 to a0:1");
  allowLog("goes on without a0:1 to b0:1");
  Params params = with();
  params.ib.timeout = 12;
  params.ib.retryCount = 0;
  fuse(params);
  IbFlow flow(*pair, {});
  flow.run(20);
  tuttiFakeVerbs()->delayAcknowledgements("b0", true);
  runUntilBothSaid(flow, "goes on without");
  EXPECT_TRUE(logged("Reason: No grant has come to its end for "));
  flow.finish();
}

TEST_F(IbFullQueueOfPorts, LeavesAPortOutWhoseQueueIsShorterThanItSaid) {
  allowLog("goes on without b0:1 to a0:1");
  allowLog("goes on without a0:1 to b0:1");
  for (const bool sends : {false, true}) {
    SCOPED_TRACE(sends ? "grants" : "receives");
    plugAgain();
    auto nics = eightNics();
    for (FakeNic& nic : nics) {
      if (nic.name == "b0") (sends ? nic.sendRoom : nic.receiveRoom) = 3;
    }
    plug(nics);
    fuse();
    tuttiFakeVerbs()->delayAcknowledgements("b0", sends);
    IbFlow flow(*pair, {});
    flow.run(100);
    flow.finish();
  }
  EXPECT_TRUE(logged(std::string("Reason: Call to ibv_post_recv failed with error Cannot allocate memory (12)")));
  EXPECT_TRUE(logged(std::string("Reason: Call to ibv_post_send failed with error Cannot allocate memory (12)")));
}

}  // namespace
}  // namespace tutti::net::ib
