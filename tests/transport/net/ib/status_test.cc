#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "transport/net/ib/ib_lines.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::net::ib {
namespace {

using namespace test;

const std::string kMemory =
    "The NIC may not reach the memory: it was freed before it was deregistered, or the PCI switch's access control "
    "(ACS) or the IOMMU keeps the NIC from it. Look at lspci -vvv for ACSCtl, or try NCCL_NET_GDR_LEVEL=LOC";
const std::string kRefuses =
    "The peer's NIC refused the access to its memory: the peer has freed it or closed the connection, or its process "
    "has failed. Look at its log";
const std::string kStrange =
    "The NIC speaks of a service that nothing here uses: look at dmesg, and update its firmware and driver";

struct StatusCase {
  int status;
  std::string name;
  std::string remedy;
};
/// All that there are, and one that is to come.
const StatusCase kStatuses[] = {
    {1, "IBV_WC_LOC_LEN_ERR",
     "A message was longer than this NIC takes, or than its receive: a fault of this library. Report this line"},
    {2, "IBV_WC_LOC_QP_OP_ERR",
     "This NIC found the work, or its queue pair, inconsistent, though its driver had taken it: look at dmesg, and "
     "update its firmware and driver"},
    {3, "IBV_WC_LOC_EEC_OP_ERR", kStrange},
    {4, "IBV_WC_LOC_PROT_ERR", kMemory},
    {5, "IBV_WC_WR_FLUSH_ERR", "The connection had failed before: look for an earlier message, here or on the peer"},
    {6, "IBV_WC_MW_BIND_ERR", kStrange},
    {7, "IBV_WC_BAD_RESP_ERR",
     "The peer's NIC gave an answer that does not belong to what was asked: the two understand each other badly. "
     "Update the firmware of both; NCCL_IB_ECE_ENABLE=0 does without what only some NICs can"},
    {8, "IBV_WC_LOC_ACCESS_ERR", kMemory},
    {9, "IBV_WC_REM_INV_REQ_ERR", kRefuses},
    {10, "IBV_WC_REM_ACCESS_ERR", kRefuses},
    {11, "IBV_WC_REM_OP_ERR", kRefuses},
    {12, "IBV_WC_RETRY_EXC_ERR",
     "The peer's NIC acknowledged nothing within all retries: its process or host is gone, its port or a link is down, "
     "the two ports cannot reach each other (wrong GID, VLAN or rail), or a switch drops the packets. Try "
     "ibv_rc_pingpong between the two; for a slow fabric raise NCCL_IB_TIMEOUT"},
    {13, "IBV_WC_RNR_RETRY_EXC_ERR", "The peer had posted no receive: a fault of this library. Report this line"},
    {14, "IBV_WC_LOC_RDD_VIOL_ERR", kStrange},
    {15, "IBV_WC_REM_INV_RD_REQ_ERR", kStrange},
    {16, "IBV_WC_REM_ABORT_ERR",
     "The peer's side has given the operation up: its NIC was reset, or its process is ending. Look at its log, and at "
     "dmesg on its host"},
    {17, "IBV_WC_INV_EECN_ERR", kStrange},
    {18, "IBV_WC_INV_EEC_STATE_ERR", kStrange},
    {19, "IBV_WC_FATAL_ERR", "The NIC has failed: look at dmesg"},
    {20, "IBV_WC_RESP_TIMEOUT_ERR",
     "The answer to a request did not come in time: the peer's NIC or a link is overloaded or down. Try "
     "ibv_rc_pingpong between the two; for a slow fabric raise NCCL_IB_TIMEOUT"},
    {21, "IBV_WC_GENERAL_ERR",
     "The NIC gives no other reason than its vendor's code: look at dmesg, and for vendor_err in the NIC's manual"},
    {22, "IBV_WC_TM_ERR", kStrange},
    {23, "IBV_WC_TM_RNDV_INCOMPLETE", kStrange},
    {24, "a status that this library does not know",
     "The header infiniband/verbs.h of the host's libibverbs says what the number means; look at dmesg"},
};

/// All at a time: each waits a second for the peer to say that it leaves.
class IbStatus : public IbPairTest {
 protected:
  struct Case {
    std::unique_ptr<IbPair> pair;
    std::unique_ptr<IbBuffer> from, to;
    void* request = nullptr;
    bool over = false;
  };
  Case prepare() {
    Case one;
    one.pair = std::make_unique<IbPair>(*a->net, 0, *b->net, 0);
    one.from = std::make_unique<IbBuffer>(*a->net, one.pair->sender, 100);
    one.to = std::make_unique<IbBuffer>(*b->net, one.pair->receiver, 100);
    return one;
  }
  /// Each request ends with an error, and that with one line.
  static void expectErrors(plugin::Net& net, std::vector<Case>& cases, const std::string& deed) {
    IbLines lines;
    EXPECT_TRUE(until([&] {
      bool all = true;
      for (Case& one : cases) {
        const Status status = one.over ? Status() : net.test(one.request, {}).status();
        if (!status.ok()) {
          one.over = true;
          EXPECT_EQ(status.code(), ncclRemoteError);
        }
        all = all && one.over;
      }
      return all;
    }));
    std::vector<std::string> expected;
    for (const StatusCase& one : kStatuses) {
      // The first connection is the fixture's, with queue pair 17 on both NICs.
      std::string line = deed;
      for (std::size_t at = 0; (at = line.find('#')) != std::string::npos;)
        line.replace(at, 1, std::to_string(18 + expected.size()));
      expected.push_back(
          "ERROR NET/IB: Got completion from peer 127.0.0.1<PORT> (control over lo) with status=" + one.name + "(" +
          std::to_string(one.status) + ") vendor_err=77 while " + line + ". " + one.remedy);
    }
    std::vector<std::string> said = lines.take();
    std::sort(said.begin(), said.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(said, expected);
  }
};

TEST_F(IbStatus, EndsASendWithOneLineThatNamesRanksPortsAndRemedy) {
  allowLog("Got completion from peer");
  connect();
  std::vector<Case> cases;
  for (const StatusCase& one : kStatuses) {
    cases.push_back(prepare());
    cases.back().pair->recv(cases.back().to->place(100));
    tuttiFakeVerbs()->failWork(IBV_WR_RDMA_WRITE_WITH_IMM, 1, static_cast<ibv_wc_status>(one.status), 77);
    cases.back().request = cases.back().pair->send(cases.back().from->place(60));
  }
  expectErrors(*a->net, cases,
               "a rank of a test, was sending to a rank of a test, from a0:1 (GID 3 ::ffff:10.0.0.1), queue pair #, "
               "to b0:1 (GID 3 ::ffff:10.0.0.3), queue pair #; open: 1 message of 60 bytes");
  for (Case& one : cases) EXPECT_FALSE(a->net->isend(one.pair->sender, one.from->place(1)).ok()) << "errors stick";
}

TEST_F(IbStatus, EndsAReceiveWhoseGrantFailsWithOneLineOfThatKind) {
  allowLog("Got completion from peer");
  connect();
  std::vector<Case> cases;
  for (const StatusCase& one : kStatuses) {
    cases.push_back(prepare());
    tuttiFakeVerbs()->failWork(IBV_WR_RDMA_WRITE, 1, static_cast<ibv_wc_status>(one.status), 77);
    cases.back().request = cases.back().pair->recv(cases.back().to->place(100));
  }
  expectErrors(*b->net, cases,
               "a rank of a test, was receiving from a rank of a test, from b0:1 (GID 3 ::ffff:10.0.0.3), queue pair "
               "#, to a0:1 (GID 3 ::ffff:10.0.0.1), queue pair #; open: 1 receive with room for 100 bytes");
  for (Case& one : cases) {
    const plugin::NetBuffer place = one.to->place(1);
    EXPECT_FALSE(b->net->irecv(one.pair->receiver, {&place, 1}).ok()) << "errors stick";
  }
}

class IbFlushStatus : public IbStatus {
 protected:
  void SetUp() override {
    auto nics = fourNics();
    for (FakeNic& nic : nics) nic.dmaBufs = true;
    plug(nics);
  }
};

TEST_F(IbFlushStatus, EndsAFlushWithOneLineThatNamesRankPortAndRemedy) {
  allowLog("A flush of what b0:1 has written failed");
  connect();
  IbLines lines;
  for (const StatusCase& one : kStatuses) {
    const Case flushed = prepare();
    const plugin::NetBuffer place = flushed.to->place(100);
    tuttiFakeVerbs()->failWork(IBV_WR_RDMA_READ, 1, static_cast<ibv_wc_status>(one.status), 77);
    const auto request = b->net->iflush(flushed.pair->receiver, {&place, 1});
    ASSERT_TRUE(request.ok());
    Status status;
    EXPECT_TRUE(until([&] { return !(status = b->net->test(request.value(), {}).status()).ok(); }));
    EXPECT_EQ(status.code(), ncclSystemError);
    const std::vector<std::string> expected{
        "ERROR NET/IB : a rank of a test: A flush of what b0:1 has written failed with status=" + one.name + "(" +
        std::to_string(one.status) + ") vendor_err=77. " + one.remedy};
    EXPECT_EQ(lines.take(), expected);
  }
}

}  // namespace
}  // namespace tutti::net::ib
