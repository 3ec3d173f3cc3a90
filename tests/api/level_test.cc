// What API levels 2.31 and 2.32 brought beside collectives with options: properties, teams, endpoints, encryption.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "nccl_device.h"

extern "C" void ncclResetDebugInitInternal();

namespace {

std::string lastError() {
  return ncclGetLastError(nullptr);
}

class Level : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ncclCommInitAll(comms_, 2, nullptr), ncclSuccess) << lastError(); }
  void TearDown() override {
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  ncclComm_t comms_[2] = {};
};

TEST_F(Level, PropertiesAreFilledAsFarAsTheCallersStructGoes) {
  struct Case {
    unsigned version;
    std::size_t size;
    std::size_t filled;
  };
  for (const Case& c : {Case{22903, 48, 34}, Case{23007, 56, 52}, Case{23102, 144, 144}, Case{23203, 152, 147},
                        Case{23900, 200, 147}}) {
    alignas(ncclCommProperties_t) unsigned char bytes[208];
    std::memset(bytes, 0xaa, sizeof(bytes));
    ncclCommProperties_t& props = *reinterpret_cast<ncclCommProperties_t*>(bytes);
    props.size = c.size;
    props.magic = NCCL_API_MAGIC;
    props.version = c.version;
    ASSERT_EQ(ncclCommQueryProperties(comms_[1], &props), ncclSuccess) << c.version << ": " << lastError();
    EXPECT_EQ(props.rank, 1);
    EXPECT_EQ(props.nRanks, 2);
    EXPECT_EQ(props.cudaDev, 1);
    EXPECT_FALSE(props.deviceApiSupport);
    if (c.filled > offsetof(ncclCommProperties_t, nLsaTeams)) {
      EXPECT_EQ(props.nLsaTeams, 2);
    }
    if (c.filled > offsetof(ncclCommProperties_t, ginSupport)) {
      EXPECT_FALSE(props.ginSupport[NCCL_GIN_TYPE_PROXY]);
      EXPECT_EQ(props.devCommRuntimeVersionSize, sizeof(ncclDevComm_t));
    }
    const std::size_t end = c.size < sizeof(props) ? c.size : sizeof(props);
    for (std::size_t i = end; i < sizeof(bytes); ++i) EXPECT_EQ(bytes[i], 0xaa) << c.version << ", byte " << i;
  }
}

TEST_F(Level, RanksOfACommunicatorHaveOneHashAndOthersAnother) {
  const auto hashOf = [](ncclComm_t comm) {
    ncclCommProperties_t props = NCCL_COMM_PROPERTIES_INITIALIZER;
    EXPECT_EQ(ncclCommQueryProperties(comm, &props), ncclSuccess);
    return props.commHash;
  };
  ncclComm_t other = nullptr;
  const int device = 0;
  ASSERT_EQ(ncclCommInitAll(&other, 1, &device), ncclSuccess);
  EXPECT_EQ(hashOf(comms_[0]), hashOf(comms_[1]));
  EXPECT_NE(hashOf(comms_[0]), hashOf(other));
  EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
}

TEST_F(Level, EveryRankIsAloneInItsTeamForCountedTransfers) {
  const ncclTeam_t flat = ncclTeamCft(comms_[1]);
  EXPECT_EQ(flat.nRanks, 1);
  EXPECT_EQ(flat.rank, 0);
  EXPECT_EQ(pncclTeamCft(comms_[1], NCCL_CFT_TEAM_HIER_LSA).nRanks, 1);
  EXPECT_EQ(ncclTeamCftMultimem(comms_[1]).nRanks, 1);
  EXPECT_EQ(ncclTeamCft(comms_[1], static_cast<ncclCftTeamMode_t>(9)).nRanks, 0);
  EXPECT_EQ(ncclTeamCft(nullptr).nRanks, 0);
}

TEST(LevelEndpoints, OfNoWindowThereAreNone) {
  ncclCftLeId id = 0;
  std::size_t offset = 0;
  EXPECT_EQ(ncclGetPeerDeviceLeInfo(nullptr, 0, 0, &id, &offset), ncclInvalidArgument);
  EXPECT_NE(lastError().find("unknown window"), std::string::npos) << lastError();
  EXPECT_EQ(ncclGetMultimemDeviceLeInfo(nullptr, 0, &id, &offset), ncclInvalidArgument);
  EXPECT_EQ(ncclGetCftDeviceLeInfo(nullptr, 0, 0, ncclTeam_t{1, 0, 1}, nullptr, &offset), ncclInvalidArgument);
  EXPECT_NE(lastError().find("leId argument is NULL"), std::string::npos) << lastError();
}

TEST(LevelEncryption, IsRefusedAsLongAsThereIsNone) {
  ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  EXPECT_EQ(ncclSetEncryption(&config), ncclSuccess) << "none is what there is";
  config.mode = NCCL_ENCRYPTION_MODE_PSK;
  EXPECT_EQ(ncclSetEncryption(&config), ncclInvalidArgument) << "without a key";
  config.psk = "secret";
  EXPECT_EQ(ncclSetEncryption(&config), ncclInvalidUsage);
  EXPECT_NE(lastError().find("tutti does not support ncclSetEncryption"), std::string::npos) << lastError();
  config.mode = 7;
  EXPECT_EQ(ncclSetEncryption(&config), ncclInvalidArgument);
  config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  config.magic = 1;
  EXPECT_EQ(ncclSetEncryption(&config), ncclInvalidArgument);
  EXPECT_EQ(ncclSetEncryption(nullptr), ncclInvalidArgument);
}

TEST(LevelDebug, ToolsMayResetIt) {
  ncclResetDebugInitInternal();
}

}  // namespace
