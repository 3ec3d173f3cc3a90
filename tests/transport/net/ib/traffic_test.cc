#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/scoped_log.h"
#include "transport/net/ib/ib_lines.h"
#include "transport/net/ib/ib_pair.h"
#include "transport/net/ib/nic/options.h"

namespace tutti::net::ib {
namespace {

using namespace test;

constexpr int kUnset = -1;
constexpr int kUndefined = std::numeric_limits<int>::min();

struct TrafficCase {
  int setClass, setLevel, setGrants;  ///< NCCL_IB_TC, NCCL_IB_SL, NCCL_IB_FIFO_TC
  int configured;                     ///< trafficClass of the configuration
  int usedClass, usedLevel;
  std::string text;
};
const TrafficCase kCases[] = {
    {kUnset, kUnset, kUnset, kUndefined, 0, 0,
     "traffic class 0 (default), service level 0 (default), grants with traffic class of the sender"},
    {kUnset, kUnset, kUnset, -1, 0, 0,
     "traffic class 0 (default), service level 0 (default), grants with traffic class of the sender"},
    {kUnset, kUnset, kUnset, 0, 0, 0,
     "traffic class 0 (trafficClass of the configuration), service level 0 (trafficClass of the configuration), grants "
     "with traffic class of the sender"},
    {kUnset, kUnset, kUnset, 15, 15, 15,
     "traffic class 15 (trafficClass of the configuration), service level 15 (trafficClass of the configuration), "
     "grants with traffic class of the sender"},
    {kUnset, kUnset, kUnset, 16, 16, 0,
     "traffic class 16 (trafficClass of the configuration), service level 0 (default), grants with traffic class of "
     "the sender"},
    {kUnset, kUnset, kUnset, 255, 255, 0,
     "traffic class 255 (trafficClass of the configuration), service level 0 (default), grants with traffic class of "
     "the sender"},
    {106, kUnset, kUnset, kUndefined, 106, 0,
     "traffic class 106 (NCCL_IB_TC), service level 0 (default), grants with traffic class of the sender"},
    {106, 3, 184, 9, 106, 3,
     "traffic class 106 (NCCL_IB_TC), service level 3 (NCCL_IB_SL), grants with traffic class "
     "184 (NCCL_IB_FIFO_TC)"},
    {106, 3, kUnset, 4711, 106, 3,
     "traffic class 106 (NCCL_IB_TC), service level 3 (NCCL_IB_SL), grants with traffic class of the sender"},
    {0, 0, 0, 7, 0, 0,
     "traffic class 0 (NCCL_IB_TC), service level 0 (NCCL_IB_SL), grants with traffic class 0 (NCCL_IB_FIFO_TC)"},
};

class IbTraffic : public VerbsTest {
 protected:
  static Params paramsOf(const TrafficCase& one) {
    Params params = verbsParams();
    params.ib.hca = "a";
    params.ib.trafficClass = one.setClass;
    params.ib.serviceLevel = one.setLevel;
    params.ib.fifoTrafficClass = one.setGrants;
    return params;
  }
  Result<std::unique_ptr<plugin::Net>> open(const Params& params, int trafficClass) {
    source = ibNetSource(params, sysfs->folder());
    plugin::NetOpening how = opening();
    how.trafficClass = trafficClass;
    return source->open(how);
  }
  void TearDown() override {
    source.reset();
    VerbsTest::TearDown();
  }
  std::unique_ptr<plugin::NetSource> source;
};

TEST_F(IbTraffic, IsToldOfEachCommunicatorWithWhereItComesFrom) {
  const ScopedLog log("INFO", "INIT");
  for (const TrafficCase& one : kCases) {
    SCOPED_TRACE(one.text);
    IbLines lines;
    ASSERT_TRUE(open(paramsOf(one), one.configured).ok());
    std::vector<std::string> said = lines.take();
    std::erase_if(said, [](const std::string& line) { return line.find("traffic class") == std::string::npos; });
    EXPECT_EQ(said, std::vector<std::string>{"INFO NET/IB : a rank of a test: " + one.text});
    const IbOptions options = ibOptions(paramsOf(one), one.configured);
    EXPECT_EQ(options.trafficClass, one.usedClass);
    EXPECT_EQ(options.serviceLevel, one.usedLevel);
    source.reset();
  }
}

const TrafficCase kNothingSet{kUnset, kUnset, kUnset, 0, 0, 0, ""};
const TrafficCase kClassSet{106, kUnset, kUnset, 0, 0, 0, ""};
const TrafficCase kLevelSet{kUnset, 3, kUnset, 0, 0, 0, ""};

TEST_F(IbTraffic, IsRefusedBeyondItsRange) {
  allowLog("of the configuration is no");
  for (const TrafficCase& set : {kNothingSet, kLevelSet}) {
    for (const int configured : {-2, 256}) {
      for (const bool infiniband : {false, true}) {
        plug(infiniband ? std::vector<FakeNic>{infinibandNic("a0", 1)} : fourNics());
        IbLines lines;
        EXPECT_EQ(open(paramsOf(set), configured).status().code(), ncclSystemError);
        EXPECT_EQ(lines.take(),
                  std::vector<std::string>{"ERROR NET/IB : a rank of a test does without this network: trafficClass " +
                                           std::to_string(configured) +
                                           " of the configuration is no traffic class, which is one of 0 to 255. Give "
                                           "another, or set NCCL_IB_TC, which goes before it"});
        source.reset();
      }
    }
  }
}

TEST_F(IbTraffic, ThatIsNoServiceLevelGoesWithLevelZeroOnInfiniBand) {
  allowLog("is no service level of InfiniBand");
  struct Used {
    bool infiniband;
    TrafficCase set;
    int configured;
    bool warns;
  };
  const Used all[] = {{true, kNothingSet, 16, true},   {true, kNothingSet, 255, true},
                      {true, kClassSet, 256, true},    {true, kClassSet, -2, true},
                      {true, kNothingSet, 15, false},  {true, kLevelSet, 16, false},
                      {false, kNothingSet, 16, false}, {true, kNothingSet, kUndefined, false}};
  for (const Used& one : all) {
    SCOPED_TRACE(one.configured);
    plug(one.infiniband ? std::vector<FakeNic>{infinibandNic("a0", 1)} : fourNics());
    IbLines lines;
    EXPECT_TRUE(open(paramsOf(one.set), one.configured).ok());
    const std::string line = "WARN NET/IB : a rank of a test: trafficClass " + std::to_string(one.configured) +
                             " of the configuration is no service level of InfiniBand, which is one of 0 to 15: its "
                             "packets go with service level 0. NCCL_IB_SL gives another";
    std::vector<std::string> said = lines.take();
    std::erase_if(said, [](const std::string& other) { return other.find("WARN") != 0 && other.find("ERROR") != 0; });
    EXPECT_EQ(said, one.warns ? std::vector<std::string>{line} : std::vector<std::string>{});
    const int level = ibOptions(paramsOf(one.set), one.configured).serviceLevel;
    EXPECT_EQ(level, one.set.setLevel >= 0 ? one.set.setLevel : one.configured == 15 ? 15 : 0);
    source.reset();
  }
}

TEST_F(IbTraffic, OfPacketsIsTheCommunicatorsOwn) {
  const IbSide b("b", *sysfs);
  auto first = open(paramsOf(kCases[3]), 15);
  ASSERT_TRUE(first.ok());
  plugin::NetOpening how = opening();
  how.trafficClass = 106;
  auto second = source->open(how);
  ASSERT_TRUE(second.ok());
  const IbPair one(*first.value(), 0, *b.net, 0);
  const IbPair other(*second.value(), 0, *b.net, 0);
  const auto ready = tuttiFakeVerbs()->readyToReceive("a0");
  ASSERT_EQ(ready.size(), 2u);
  EXPECT_EQ(ready[0].ah_attr.grh.traffic_class, 15);
  EXPECT_EQ(ready[0].ah_attr.sl, 15);
  EXPECT_EQ(ready[1].ah_attr.grh.traffic_class, 106);
  EXPECT_EQ(ready[1].ah_attr.sl, 0);
}

}  // namespace
}  // namespace tutti::net::ib
