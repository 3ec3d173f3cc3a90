#include "comm/settings/topology_settings.h"

#include <gtest/gtest.h>

#include "base/settings/params.h"

namespace tutti::comm {
namespace {

TEST(TopologySettings, AreTheFilesAndWaysOfTheEnvironment) {
  Params params;
  params.topology.topoFile = "/m.xml";
  params.topology.graphDumpFile = "/g.xml";
  params.topology.graphDumpRank = 3;
  params.topology.nvbDisable = true;
  const TopologySettings settings = topologySettingsFrom(params);
  EXPECT_EQ(settings.file, "/m.xml");
  EXPECT_TRUE(settings.graphDump.wantedBy(3));
  EXPECT_FALSE(settings.graphDump.wantedBy(0));
  EXPECT_FALSE(settings.dump.wantedBy(0)) << "no file";
  EXPECT_TRUE(settings.paths.nvbDisabled);
}

}  // namespace
}  // namespace tutti::comm
