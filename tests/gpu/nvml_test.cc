#include "gpu/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tutti {
namespace {

TEST(Nvml, KnowsDevicesByTheirBusId) {
  const Nvml nvml = Nvml::open(std::getenv("TUTTI_TEST_NVML"));
  EXPECT_EQ(nvml.indexOf("0000:1b:00.0"), 5);
  EXPECT_EQ(nvml.indexOf("0000:1c:00.0"), -1) << "it has no such device";
}

TEST(Nvml, KnowsNothingWhereItIsMissing) {
  EXPECT_EQ(Nvml::open("libabsent-ml.so.1").indexOf("0000:1b:00.0"), -1);
  EXPECT_EQ(Nvml::open(std::getenv("TUTTI_TEST_OLD_DRIVER")).indexOf("0000:1b:00.0"), -1) << "no NVML";
}

}  // namespace
}  // namespace tutti
