// The configuration that communicators come to have: what they are given, what their parents had, the environment.
#include <fmt/format.h>

#include <string>

#include "comm/share.h"
#include "support/scoped_log.h"

namespace tutti::comm {
namespace {

using test::destroy;
using test::Member;
using test::settle;
using test::splitOf;
using test::withFamily;

bool said(const std::string& text) {
  return test::capturedText().find(text) != std::string::npos;
}

TEST(WorldConfig, IsSaidOfChildrenAsWell) {
  const test::ScopedLog level("INFO");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = 3;
  config.trafficClass = 5;
  withFamily(
      2,
      [](Member& m) {
        const ncclComm_t child = splitOf(m.comm);
        EXPECT_TRUE(said(fmt::format("Comm config of comm {} rank {}: maxCTAs 3, trafficClass 5; else the defaults",
                                     fmt::ptr(child), m.rank)))
            << test::capturedText();
        ncclConfig_t own = NCCL_CONFIG_INITIALIZER;
        ncclComm_t other = nullptr;
        ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &other, &own), ncclSuccess);
        EXPECT_FALSE(said(fmt::format("Comm config of comm {} rank", fmt::ptr(other)))) << "all are defaults";
        for (ncclComm_t comm : {child, other}) destroy(comm);
      },
      config);
}

TEST(WorldConfig, RanksThatDifferAreWarnedAndGoOn) {
  test::allowLog("Comm config splitShare differs : rank 0");
  const ncclUniqueId id = test::newId();
  test::runRanks(3, [&](int rank) {
    test::useDevice(rank);
    Member m{rank, 3, nullptr, test::device(rank), gpu::Stream::create(test::device(rank)).value()};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = rank == 1 ? 1 : 0;
    ncclCommInitRankConfig(&m.comm, 3, id, rank, &config);
    ASSERT_EQ(settle(m.comm), ncclSuccess);
    test::checkAll(m, m.comm, 1);
    destroy(m.comm);
  });
  EXPECT_TRUE(said("Comm config splitShare differs : rank 0")) << test::capturedText();
}

TEST(WorldConfig, TheNameIsCopiedInheritedAndInTheLinesOfInit) {
  const test::ScopedLog level("INFO");
  withFamily(1, [](Member& m) {
    std::string name = "training";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = name.c_str();
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(m.comm, 0, 0, &child, &config), ncclSuccess);
    name.assign(name.size(), 'x');
    const ncclComm_t grandchild = splitOf(child);
    for (ncclComm_t comm : {child, grandchild}) {
      int named = 0;
      for (const std::string& line : test::capturedLog()) {
        const bool ofInit =
            line.find(" Init START") != std::string::npos || line.find(" Init COMPLETE") != std::string::npos;
        if (!ofInit || line.find(fmt::format("comm {} ", fmt::ptr(comm))) == std::string::npos) continue;
        EXPECT_NE(line.find(" commName training "), std::string::npos) << line;
        ++named;
      }
      EXPECT_EQ(named, 2);
      destroy(comm);
    }
  });
}

}  // namespace
}  // namespace tutti::comm
