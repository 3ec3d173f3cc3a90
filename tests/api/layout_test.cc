#include "layout.h"

#include <gtest/gtest.h>

extern "C" {
extern ncclConfig_t layoutConfig;
extern ncclSimInfo_t layoutSimInfo;
extern ncclDevCommRequirements_t layoutRequirements;
extern ncclCommProperties_t layoutProperties;
extern ncclCollConfig_t layoutCollConfig;
extern ncclEncryptionConfig_t layoutEncryption;
}

TEST(Layout, ConfigInitializerSetsHeaderAndLeavesTheRestUndefined) {
  EXPECT_EQ(layoutConfig.size, 120u);
  EXPECT_EQ(layoutConfig.magic, 0xcafebeefu);
  EXPECT_EQ(layoutConfig.version, 23203u);
  EXPECT_EQ(layoutConfig.netName, nullptr);
  EXPECT_EQ(layoutConfig.commName, nullptr);
  const int* numbers = &layoutConfig.collnetEnable;
  for (int i = 0; i < 15; ++i) EXPECT_EQ(numbers[i], NCCL_CONFIG_UNDEF_INT) << "field " << i << " from collnetEnable";
  EXPECT_EQ(layoutConfig.blocking, NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(layoutConfig.trafficClass, NCCL_CONFIG_UNDEF_INT);
}

TEST(Layout, OtherInitializersSetTheirMagic) {
  EXPECT_EQ(layoutSimInfo.magic, 0x74685283u);
  EXPECT_EQ(layoutSimInfo.estimatedTime, -1.0f);
  EXPECT_EQ(layoutRequirements.magic, 0xcafebeefu);
  EXPECT_EQ(layoutRequirements.ginContextCount, 4);
  EXPECT_TRUE(layoutRequirements.ginVaSignalsRequired);
  EXPECT_EQ(layoutProperties.size, 152u);
}

TEST(Layout, CollConfigInitializerAsksForNothing) {
  EXPECT_EQ(layoutCollConfig.size, 72u);
  EXPECT_EQ(layoutCollConfig.magic, 0xcafebeefu);
  EXPECT_EQ(layoutCollConfig.version, 23203u);
  EXPECT_EQ(layoutCollConfig.ext, nullptr);
  EXPECT_EQ(layoutCollConfig.minCTAs, NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(layoutCollConfig.cgaClusterSize, NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(layoutCollConfig.algSelection, nullptr);
  EXPECT_EQ(layoutCollConfig.forceAlgSelection, 1);
  EXPECT_EQ(layoutCollConfig.CTAPolicy, NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(layoutCollConfig.userProfilerTag, 0u);
  EXPECT_EQ(layoutCollConfig.launchCompletionEvent, nullptr);
  EXPECT_EQ(layoutEncryption.size, 32u);
  EXPECT_EQ(layoutEncryption.mode, NCCL_ENCRYPTION_MODE_NONE);
}
