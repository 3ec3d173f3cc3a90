#include <cerrno>
#include <string>
#include <utility>

#include "base/log.h"
#include "support/descriptors.h"
#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::net::ib {
namespace {

using namespace test;

class IbFailure : public IbPairTest {
 protected:
  static Params quick() {
    Params params = verbsParams();
    params.ib.timeout = 12;  // with no repetition, four times 17 ms
    params.ib.retryCount = 0;
    return params;
  }
  /// The error that testing ends in.
  Status failureOf(plugin::Net& net, void* request) {
    Status status;
    EXPECT_TRUE(request != nullptr && until([&] {
                  status = net.test(request, {}).status();
                  return !status.ok();
                }));
    return status;
  }
  /// Whether it stays open without an error for a while.
  bool staysOpen(plugin::Net& net, void* request, milliseconds time = 50ms) {
    const Deadline deadline = Deadline::in(time);
    while (!deadline.expired()) {
      const auto over = net.test(request, {});
      if (!over.ok() || over.value()) return false;
    }
    return true;
  }
  static bool logged(std::string_view part) { return capturedText().find(part) != std::string::npos; }
  /// Closes an end without a word: as if its process had ended.
  void killRecv() {
    allowLog("Call to ibv_post_recv failed");
    const plugin::NetBuffer place = incoming(1).place(1);
    tuttiFakeVerbs()->failCall("ibv_post_recv", 1, EIO);
    EXPECT_EQ(b->net->irecv(pair->receiver, {&place, 1}).status().code(), ncclSystemError);
    in.clear();
    pair->closeRecv();
  }
  /// Needs a grant.
  void killSend() {
    allowLog("Call to ibv_post_send failed");
    const plugin::NetBuffer place = outgoing(1).place(1);
    tuttiFakeVerbs()->failCall("ibv_post_send", 1, EIO);
    EXPECT_EQ(a->net->isend(pair->sender, place).status().code(), ncclSystemError);
    out.clear();
    pair->closeSend();
  }
  /// Asks without giving the processor away: where others want it, each time may take milliseconds.
  double secondsUntilFailure(plugin::Net& net, void* request) {
    const auto begin = SteadyClock::now();
    const Deadline deadline = Deadline::in(kGenerous);
    Status status;
    while (status.ok() && !deadline.expired()) status = net.test(request, {}).status();
    EXPECT_EQ(status.code(), ncclRemoteError);
    return secondsSince(begin);
  }
  /// The error that asking for a grant ends in.
  Status failureOfSends() {
    const plugin::NetBuffer place = outgoing(1).place(1);
    Status status;
    EXPECT_TRUE(until([&] {
      status = a->net->isend(pair->sender, place).status();
      return !status.ok();
    }));
    return status;
  }
};

TEST_F(IbFailure, RefusesToWriteBeyondWhatWasRegistered) {
  allowLog("IBV_WC_LOC_PROT_ERR");
  connect();
  pair->recv(incoming(1 << 20).place(1 << 20));
  IbBuffer& small = outgoing(10);
  plugin::NetBuffer beyond = small.place(1 << 20);
  void* const sent = pair->send(beyond);
  EXPECT_EQ(failureOf(*a->net, sent).code(), ncclRemoteError);
}

TEST_F(IbFailure, NamesAPeerWhoseMemoryIsGone) {
  allowLog("IBV_WC_REM_ACCESS_ERR");
  allowLog("IBV_WC_WR_FLUSH_ERR");
  connect();
  void* const received = pair->recv(incoming(100).place(100));
  in.clear();
  void* const sent = pair->send(outgoing(100).place(100));
  EXPECT_EQ(failureOf(*a->net, sent).code(), ncclRemoteError);
  EXPECT_EQ(failureOf(*b->net, received).code(), ncclRemoteError);
}

TEST_F(IbFailure, NamesBothPortsWhereNothingComesBack) {
  allowLog("IBV_WC_RETRY_EXC_ERR(12)");
  connect();
  pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->unplugWire("b0");
  void* const sent = pair->send(outgoing(100).place(100));
  EXPECT_EQ(failureOf(*a->net, sent).code(), ncclRemoteError);
  EXPECT_TRUE(logged("vendor_err=129"));
  for (const char* part : {"a0:1 (GID ", " to b0:1 (GID ", "Try ibv_rc_pingpong between the two"}) {
    EXPECT_TRUE(logged(part)) << part;
  }
}

TEST_F(IbFailure, NamesWhatKeepsTheNicFromItsOwnMemory) {
  allowLog("IBV_WC_LOC_PROT_ERR(4)");
  connect();
  pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->failWork(IBV_WR_RDMA_WRITE_WITH_IMM, 1, IBV_WC_LOC_PROT_ERR);
  void* const sent = pair->send(outgoing(100).place(100));
  EXPECT_EQ(failureOf(*a->net, sent).code(), ncclRemoteError);
  for (const char* part : {"access control (ACS) or the IOMMU", "lspci -vvv", "NCCL_NET_GDR_LEVEL=LOC"}) {
    EXPECT_TRUE(logged(part)) << part;
  }
}

TEST_F(IbFailure, LeavesReceivesOpenWhenTheSenderHasLeft) {
  connect();
  void* const early = pair->recv(incoming(100).place(100));
  pair->closeSend();
  void* const late = pair->recv(incoming(100).place(100));
  ASSERT_NE(late, nullptr);
  EXPECT_TRUE(staysOpen(*b->net, early));
  EXPECT_TRUE(staysOpen(*b->net, late));
}

TEST_F(IbFailure, GivesWhatCameBeforeTheSenderLeft) {
  connect();
  void* const first = pair->recv(incoming(100).place(100));
  void* const second = pair->recv(incoming(100).place(100));
  pair->finishSend(pair->send(outgoing(100).place(100)));
  out.clear();
  pair->closeSend();
  EXPECT_EQ(pair->finishRecv(first), std::vector<int>{100});
  EXPECT_TRUE(staysOpen(*b->net, second));
}

TEST_F(IbFailure, NamesASenderThatEndsWithoutAWordAtOnce) {
  connect();
  void* const received = pair->recv(incoming(100).place(100));
  killSend();
  EXPECT_LT(secondsUntilFailure(*b->net, received), 0.9) << "a second is for those who say goodbye";
  const std::string said = lastErrorText();
  EXPECT_NE(said.find("its process or host is gone"), std::string::npos) << said;
  EXPECT_NE(said.find("while receiving"), std::string::npos) << said;
  EXPECT_FALSE(logged("is gone")) << "it may have said goodbye elsewhere";
}

TEST_F(IbFailure, NamesAReceiverThatEndsUnderAMessageAtOnce) {
  allowLog("The peer's process is gone");
  allowLog("its process or host is gone");
  connect();
  pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->hold(true);
  void* const sent = pair->send(outgoing(100).place(100));
  killRecv();
  tuttiFakeVerbs()->hold(false);
  EXPECT_LT(secondsUntilFailure(*a->net, sent), 0.9) << "a second is for those who say goodbye";
}

TEST_F(IbFailure, EndsAConnectionWhosePortStaysDown) {
  expectLog("The port b0:1 has been down");
  connect(quick());
  void* const received = pair->recv(incoming(100).place(100));
  allowLog("Got non-fatal async event");
  tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_PORT_ERR, 1);
  EXPECT_GE(secondsUntilFailure(*b->net, received), 0.05);
  EXPECT_TRUE(logged("b0:1 Got non-fatal async event: port error("));
}

TEST_F(IbFailure, BearsAPortThatComesBack) {
  allowLog("Got non-fatal async event");
  Params patient = quick();
  patient.ib.retryCount = 7;
  connect(patient);
  void* const received = pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_PORT_ERR, 1);
  EXPECT_TRUE(until([] { return logged("port error"); }));
  EXPECT_TRUE(staysOpen(*b->net, received, 20ms));
  tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_PORT_ACTIVE, 1);
  EXPECT_TRUE(until([] { return logged("port active"); }));
  EXPECT_TRUE(staysOpen(*b->net, received, 800ms)) << "longer than it may be down";
  pair->finishSend(pair->send(outgoing(100).place(100)));
  EXPECT_EQ(pair->finishRecv(received), std::vector<int>{100});
}

TEST_F(IbFailure, IsNotConcernedByOtherPortsOfTheNic) {
  allowLog("Got non-fatal async event");
  connect(quick());
  void* const received = pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_PORT_ERR, 2);
  EXPECT_TRUE(staysOpen(*b->net, received, 300ms));
}

TEST_F(IbFailure, EndsTheConnectionsOfADeviceThatFails) {
  expectLog("Got async fatal event");
  expectLog("b0:1 has failed (local catastrophic error)");
  connect();
  void* const received = pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_DEVICE_FATAL, 0);
  EXPECT_EQ(failureOf(*b->net, received).code(), ncclSystemError);
}

TEST_F(IbFailure, IgnoresFatalEventsWhereItIsTold) {
  expectLog("Got async fatal event");
  Params params = verbsParams();
  params.ib.returnAsyncEvents = false;
  connect(params);
  void* const received = pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_DEVICE_FATAL, 0);
  EXPECT_TRUE(until([] { return logged("fatal event"); }));
  EXPECT_TRUE(staysOpen(*b->net, received));
}

TEST_F(IbFailure, SaysOfAFailedMessageWhatTheNicSaidOfItsQueuePair) {
  allowLog("Got async event on queue pair");
  allowLog("the NIC says local work queue catastrophic error");
  Params params = verbsParams();
  params.ib.returnAsyncEvents = false;
  connect(params);
  pair->recv(incoming(100).place(100));
  EXPECT_EQ(tuttiFakeVerbs()->queuePairEvents("a0", IBV_EVENT_QP_FATAL), 1);
  EXPECT_TRUE(until([] { return logged("Got async event on queue pair"); }));
  tuttiFakeVerbs()->failWork(IBV_WR_RDMA_WRITE_WITH_IMM, 1, IBV_WC_LOC_QP_OP_ERR);
  void* const sent = pair->send(outgoing(100).place(100));
  EXPECT_EQ(failureOf(*a->net, sent).code(), ncclRemoteError);
  EXPECT_TRUE(logged("the NIC says local work queue catastrophic error"));
}

TEST_F(IbFailure, TellsASenderThatWaitsForAGrantThatItsPeerIsGone) {
  allowLog("its process or host is gone");
  connect();
  killRecv();
  EXPECT_EQ(failureOfSends().code(), ncclRemoteError);
}

TEST_F(IbFailure, TellsASenderThatWaitsForAGrantThatItsPeerHasLeft) {
  allowLog("has closed");
  connect();
  pair->closeRecv();
  EXPECT_EQ(failureOfSends().code(), ncclRemoteError);
}

TEST_F(IbFailure, EndsAMessageWhoseReceiverHasLeftBeforeItCame) {
  allowLog("Got completion from peer");
  connect();
  pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->hold(true);
  void* const sent = pair->send(outgoing(100).place(100));
  in.clear();
  pair->closeRecv();
  tuttiFakeVerbs()->hold(false);
  EXPECT_EQ(failureOf(*a->net, sent).code(), ncclRemoteError);
}

TEST_F(IbFailure, EndsAConnectionWhoseQueuePairTheNicHasGivenUp) {
  constexpr std::pair<ibv_event_type, const char*> kEvents[] = {
      {IBV_EVENT_QP_FATAL, "local work queue catastrophic error"},
      {IBV_EVENT_QP_REQ_ERR, "invalid request local work queue error"},
      {IBV_EVENT_QP_ACCESS_ERR, "local access violation work queue error"}};
  allowLog("Got async event on queue pair");
  connect();
  for (const auto& [event, text] : kEvents) {
    allowLog(text);
    IbPair one(*a->net, 0, *b->net, 0);
    IbBuffer place(*b->net, one.receiver, 100);
    void* const received = one.recv(place.place(100));
    EXPECT_GE(tuttiFakeVerbs()->queuePairEvents("b0", event), 1);
    EXPECT_EQ(failureOf(*b->net, received).code(), ncclSystemError) << text;
    EXPECT_TRUE(logged(text));
  }
}

TEST_F(IbFailure, EndsTheConnectionsOfADeviceWhoseCompletionsOverflow) {
  expectLog("Got async fatal event: CQ error");
  expectLog("b0:1 has failed (CQ error)");
  connect();
  void* const received = pair->recv(incoming(100).place(100));
  tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_CQ_ERR, 0);
  EXPECT_EQ(failureOf(*b->net, received).code(), ncclSystemError);
}

}  // namespace
}  // namespace tutti::net::ib
