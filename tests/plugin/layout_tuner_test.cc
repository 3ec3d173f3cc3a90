// The layouts that tuner plugins were compiled with: sizes and offsets on 64-bit Linux. They never change.
#include <gtest/gtest.h>

#include <cstddef>

#include "nccl_tuner.h"

namespace {

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset));
#define TUNER_TABLE(type, size, last)    \
  static_assert(sizeof(type) == (size)); \
  AT(type, name, 0) AT(type, init, 8) AT(type, getCollInfo, 16) AT(type, last, 24)

// clang-format off
TUNER_TABLE(ncclTuner_v2_t, 32, destroy)
TUNER_TABLE(ncclTuner_v3_t, 32, destroy)
TUNER_TABLE(ncclTuner_v4_t, 32, destroy)
TUNER_TABLE(ncclTuner_v5_t, 32, finalize)
TUNER_TABLE(ncclTuner_v6_t, 40, finalize)
AT(ncclTuner_v6_t, getChunkSize, 32)

static_assert(sizeof(ncclNvlDomainInfo_v5_t) == 12);
AT(ncclNvlDomainInfo_v5_t, minRanksPerNvlDomain, 4) AT(ncclNvlDomainInfo_v5_t, maxRanksPerNvlDomain, 8)
static_assert(sizeof(ncclTunerConstants_v5_t) == 1152);
AT(ncclTunerConstants_v5_t, hwLatencies, 168) AT(ncclTunerConstants_v5_t, llMaxBws, 672)
AT(ncclTunerConstants_v5_t, perChMaxRingLL128Bws, 768) AT(ncclTunerConstants_v5_t, perChMaxTreeLL128Bws, 864)
AT(ncclTunerConstants_v5_t, perChMaxTreeBws, 960) AT(ncclTunerConstants_v5_t, perChMaxNVLSTreeBws, 1056)
    // clang-format on

    TEST(TunerLayout, HasTheValuesOfConstants) {
  EXPECT_EQ(NCCL_ALGO_UNDEF, -1);
  EXPECT_EQ(NCCL_ALGO_COLLNET_DIRECT, 2);
  EXPECT_EQ(NCCL_ALGO_PAT, 6);
  EXPECT_EQ(NCCL_NUM_ALGORITHMS, 7);
  EXPECT_EQ(NCCL_PROTO_UNDEF, -1);
  EXPECT_EQ(NCCL_PROTO_SIMPLE, 2);
  EXPECT_EQ(NCCL_NUM_PROTOCOLS, 3);
  EXPECT_EQ(NCCL_HW_NET, 2);
  EXPECT_EQ(NCCL_BLACKWELL_COMPCAP_IDX, 3);
  EXPECT_EQ(NCCL_TUNING_SCALE_4NODES, 2);
  EXPECT_EQ(NCCL_ALGO_PROTO_IGNORE, -1.0);
}

}  // namespace
