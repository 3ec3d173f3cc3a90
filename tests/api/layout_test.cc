#include "layout.h"

#include <gtest/gtest.h>

extern "C" {
extern ncclConfig_t layoutConfig;
extern ncclSimInfo_t layoutSimInfo;
extern ncclDevCommRequirements_t layoutRequirements;
extern ncclCommProperties_t layoutProperties;
}

TEST(Layout, ConfigInitializerSetsHeaderAndLeavesTheRestUndefined) {
  EXPECT_EQ(layoutConfig.size, 96u);
  EXPECT_EQ(layoutConfig.magic, 0xcafebeefu);
  EXPECT_EQ(layoutConfig.version, 23007u);
  EXPECT_EQ(layoutConfig.netName, nullptr);
  EXPECT_EQ(layoutConfig.commName, nullptr);
  const int* numbers = &layoutConfig.collnetEnable;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(numbers[i], NCCL_CONFIG_UNDEF_INT) << "field " << i << " from collnetEnable";
  EXPECT_EQ(layoutConfig.blocking, NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(layoutConfig.trafficClass, NCCL_CONFIG_UNDEF_INT);
}

TEST(Layout, OtherInitializersSetTheirMagic) {
  EXPECT_EQ(layoutSimInfo.magic, 0x74685283u);
  EXPECT_EQ(layoutSimInfo.estimatedTime, -1.0f);
  EXPECT_EQ(layoutRequirements.magic, 0xcafebeefu);
  EXPECT_EQ(layoutRequirements.ginContextCount, 4);
  EXPECT_TRUE(layoutRequirements.ginVaSignalsRequired);
  EXPECT_EQ(layoutProperties.size, 56u);
}
