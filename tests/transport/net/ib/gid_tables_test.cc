#include <string>
#include <utility>
#include <vector>

#include "transport/net/ib/ib_lines.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::net::ib {
namespace {

using namespace test;

struct Shape {
  std::string name;
  std::vector<FakeGid> gids;
  std::string range;  ///< of NCCL_IB_ADDR_RANGE
  int index;          ///< that is taken
  std::string doubt;  ///< "": none
};
const std::string kBehind = ". Peers may not be reachable; show_gids lists what there is";
const std::vector<FakeGid> kVlans{{"fe80::1", 1},         {"fe80::1", 2},         {"::ffff:10.0.0.1", 1},
                                  {"::ffff:10.0.0.1", 2}, {"::ffff:10.7.0.1", 1}, {"::ffff:10.7.0.1", 2}};
const Shape kShapes[] = {
    {"link-local ones alone",
     {{"fe80::1", 1}, {"fe80::1", 2}},
     "",
     1,
     "GID 1 fe80::1: it is link-local: give the interface an IP address that peers can reach"},
    {"IPv4 of both versions",
     {{"fe80::1", 1}, {"fe80::1", 2}, {"::ffff:10.0.0.1", 1}, {"::ffff:10.0.0.1", 2}},
     "",
     3,
     ""},
    {"IPv6 alone", {{"fe80::1", 1}, {"fe80::1", 2}, {"fd00::1", 1}, {"fd00::1", 2}}, "", 3, ""},
    {"several VLANs", kVlans, "", 3, ""},
    {"several VLANs, of which one is in the range", kVlans, "10.7.0.0/16", 5, ""},
    {"several VLANs, of which none is in the range", kVlans, "10.9.0.0/16", 3,
     "GID 3 ::ffff:10.0.0.1: none is within NCCL_IB_ADDR_RANGE"},
    {"entries that are empty in the middle",
     {{"fe80::1", 1}, {"", 0}, {"", 0}, {"::ffff:10.0.0.1", 1}, {"", 0}, {"::ffff:10.0.0.1", 2}, {"", 0}},
     "",
     5,
     ""},
    {"version 1 alone",
     {{"fe80::1", 1}, {"::ffff:10.0.0.1", 1}},
     "",
     1,
     "GID 1 ::ffff:10.0.0.1: none is of RoCE version 2 (NCCL_IB_ROCE_VERSION_NUM)"},
};

class IbGidTables : public IbPairTest {
 protected:
  void plugTable(const std::vector<FakeGid>& gids, bool atOnce) {
    auto nics = fourNics();
    nics[0].ports[0].gids = gids;
    nics[0].gidTables = atOnce;
    plug(nics);
  }
  void plugAgain() {
    pair.reset();
    a.reset();
    b.reset();
    plug(fourNics());
  }
};

TEST_F(IbGidTables, GiveConnectionsTheAddressThatPeersCanReach) {
  allowLog("a0:1 uses GID");
  for (const Shape& one : kShapes) {
    for (const bool atOnce : {false, true}) {
      SCOPED_TRACE(one.name + (atOnce ? ", as a table" : ", entry by entry"));
      plugTable(one.gids, atOnce);
      Params params = verbsParams();
      params.ib.addrRange = one.range;
      IbLines lines;
      connect(params, verbsParams());
      const std::vector<std::string> doubts(one.doubt.empty() ? 0 : 1,
                                            "WARN NET/IB : a0:1 uses " + one.doubt + kBehind);
      EXPECT_EQ(lines.take(), doubts);
      EXPECT_EQ(tuttiFakeVerbs()->readyToReceive("a0").at(0).ah_attr.grh.sgid_index, one.index);
      exchange(1000, 5);
      plugAgain();
    }
  }
}

/// The NIC refuses what an entry that is empty would stand for; both ends say which.
TEST_F(IbGidTables, NameThePortWhoseTableIsEmpty) {
  allowLog("a0:1 uses GID");
  allowLog("Call to ibv_modify_qp failed");
  allowLog("closed the connection");
  for (const std::size_t entries : {std::size_t{0}, std::size_t{3}}) {
    for (const bool atOnce : {false, true}) {
      SCOPED_TRACE(std::to_string(entries) + (atOnce ? " as a table" : " entry by entry"));
      plugTable(std::vector<FakeGid>(entries, FakeGid{"", 0}), atOnce);
      a = std::make_unique<IbSide>("a", *sysfs);
      b = std::make_unique<IbSide>("b", *sysfs);
      plugin::NetHandle handle{};
      void* const listener = b->net->listen(0, handle).value();
      IbLines lines;
      Status dialled;
      EXPECT_TRUE(until([&] {
        EXPECT_TRUE(b->net->accept(listener).ok());
        return !(dialled = a->net->connect(0, handle).status()).ok();
      }));
      EXPECT_EQ(dialled.code(), ncclSystemError);
      const std::vector<std::string> both{
          "WARN NET/IB : a0:1 uses GID 0 ::: the port's table has none" + kBehind,
          "ERROR NET/IB : Call to ibv_modify_qp failed with 22 Invalid argument (22), on dev a0:1, curr state INIT, "
          "next "
          "state RTR, from a0:1 (GID 0 ::) to b0:1 (GID 3 ::ffff:10.0.0.3). Leave NCCL_IB_GID_INDEX at -1, and look "
          "whether both GIDs are of the same kind"};
      EXPECT_EQ(lines.take(), both);
      EXPECT_TRUE(b->net->closeListen(listener).ok());
      plugAgain();
    }
  }
}

}  // namespace
}  // namespace tutti::net::ib
