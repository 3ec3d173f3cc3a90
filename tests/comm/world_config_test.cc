// The configuration that communicators come to have: what they are given, what their parents had, the environment.
#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>

#include "comm/settings/other_config.h"
#include "comm/share.h"
#include "comm/state/communicator.h"
#include "support/scoped_log.h"

namespace tutti::comm {
namespace {

using test::destroy;
using test::expectSame;
using test::Member;
using test::settle;
using test::splitOf;
using test::withFamily;

bool said(const std::string& text) {
  return test::capturedText().find(text) != std::string::npos;
}

/// The child that `make` begins to make of `parent`, once it is there.
ncclComm_t childOf(ncclComm_t parent, const std::function<ncclResult_t(ncclComm_t*)>& make) {
  ncclComm_t child = nullptr;
  EXPECT_EQ(make(&child), ncclSuccess);
  EXPECT_EQ(settle(parent), ncclSuccess);
  EXPECT_EQ(settle(child), ncclSuccess);
  return child;
}

ncclComm_t splitWith(ncclComm_t parent, ncclConfig_t* config) {
  return childOf(parent, [&](ncclComm_t* child) { return ncclCommSplit(parent, 0, 0, child, config); });
}

ncclComm_t shrunkWith(ncclComm_t parent, ncclConfig_t* config) {
  int last = test::sizeOf(parent) - 1;
  return childOf(
      parent, [&](ncclComm_t* child) { return ncclCommShrink(parent, &last, 1, child, config, NCCL_SHRINK_DEFAULT); });
}

TEST(WorldConfig, WithoutOneChildrenAndGrandchildrenHaveEveryFieldOfTheParent) {
  withFamily(
      3,
      [](Member& m) {
        const ncclComm_t child = splitWith(m.comm, nullptr);
        expectSame(child->config, m.comm->config);
        EXPECT_FALSE(child->config.blocking());
        const ncclComm_t grandchild = splitWith(child, nullptr);
        expectSame(grandchild->config, m.comm->config);
        for (ncclComm_t comm : {grandchild, child}) destroy(comm);
        if (m.rank == 2) return;
        const ncclComm_t shrunk = shrunkWith(m.comm, nullptr);
        expectSame(shrunk->config, m.comm->config);
        destroy(shrunk);
      },
      test::otherConfig());
}

TEST(WorldConfig, WithOneChildrenHaveNothingOfTheParent) {
  const Config defaults = parseConfig(nullptr, undefinedConfig()).value();
  withFamily(
      3,
      [&](Member& m) {
        ncclConfig_t empty = NCCL_CONFIG_INITIALIZER;
        const ncclComm_t child = splitWith(m.comm, &empty);
        // What sharing makes the parent's, whatever the child's configuration says.
        Config shall = defaults;
        shall.values.trafficClass = m.comm->config.values.trafficClass;
        shall.netName = m.comm->config.netName;
        expectSame(child->config, shall);
        EXPECT_TRUE(child->config.blocking());
        const ncclComm_t grandchild = splitWith(child, nullptr);
        expectSame(grandchild->config, child->config);
        for (ncclComm_t comm : {grandchild, child}) destroy(comm);
      },
      test::otherConfig());
  ncclConfig_t alone = test::otherConfig();
  alone.splitShare = alone.shrinkShare = 0;
  withFamily(
      3,
      [&](Member& m) {
        ncclConfig_t empty = NCCL_CONFIG_INITIALIZER;
        const ncclComm_t child = splitWith(m.comm, &empty);
        expectSame(child->config, defaults);
        destroy(child);
        if (m.rank == 2) return;
        const ncclComm_t shrunk = shrunkWith(m.comm, &empty);
        expectSame(shrunk->config, defaults);
        destroy(shrunk);
      },
      alone);
}

TEST(WorldConfig, TheEnvironmentOverridesWhatIsInheritedAndIsInheritedItself) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = 5;
  config.graphUsageMode = 1;
  test::Turns turns(2);
  std::optional<test::ScopedEnv> variable;
  withFamily(
      2,
      [&](Member& m) {
        if (m.rank == 0) variable.emplace("NCCL_MAX_CTAS", "3");
        turns.next();
        const ncclComm_t child = splitOf(m.comm);
        turns.next();
        if (m.rank == 0) variable.reset();
        turns.next();
        const ncclComm_t grandchild = splitOf(child);
        EXPECT_EQ(m.comm->config.values.maxCTAs, 5);
        for (ncclComm_t comm : {child, grandchild}) {
          EXPECT_EQ(comm->config.values.maxCTAs, 3);
          EXPECT_EQ(comm->config.values.graphUsageMode, 1);
          destroy(comm);
        }
      },
      config);
}

TEST(WorldConfig, OldMembersOfAGrowInheritAndNewRanksDoNot) {
  test::allowLog("Comm config graphUsageMode differs");
  const ncclUniqueId id = test::newId();
  ncclUniqueId growth{};
  test::Turns turns(2);
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    ncclComm_t one = nullptr;
    ncclComm_t grown = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.graphUsageMode = 0;
    config.commName = "training";
    if (rank == 0) {
      ASSERT_EQ(ncclCommInitRankConfig(&one, 1, id, 0, &config), ncclSuccess);
      ASSERT_EQ(ncclCommGetUniqueId(one, &growth), ncclSuccess);
    }
    turns.next();
    ASSERT_EQ(ncclCommGrow(one, 2, &growth, rank == 0 ? -1 : rank, &grown, nullptr), ncclSuccess);
    EXPECT_EQ(grown->config.values.graphUsageMode, rank == 0 ? 0 : 2);
    EXPECT_EQ(grown->config.commName, rank == 0 ? "training" : "");
    for (ncclComm_t comm : {grown, one}) {
      if (comm != nullptr) destroy(comm);
    }
  });
  EXPECT_TRUE(said("Comm config graphUsageMode differs")) << "they have different ones";
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
