#include "base/hwloc/topology.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/threads/cpu_set.h"

namespace tutti {
namespace {

TEST(Hwloc, SaysWhatIsMissing) {
  EXPECT_EQ(Hwloc::open("libhwloc-that-is-nowhere.so").calls(), nullptr);
  EXPECT_NE(Hwloc::open("libhwloc-that-is-nowhere.so").text().find("libhwloc-that-is-nowhere.so: "), std::string::npos);
  EXPECT_NE(Hwloc::open("libm.so.6").text().find(" has no hwloc_get_api_version"), std::string::npos);
}

TEST(Hwloc, IsOffWhereTheSettingSaysSo) {
  const char* const setting = std::getenv("TUTTI_HWLOC");
  if (setting == nullptr || std::string(setting) != "0") GTEST_SKIP() << "TUTTI_HWLOC is not 0";
  EXPECT_EQ(Hwloc::instance().calls(), nullptr);
  std::string why;
  EXPECT_FALSE(HwlocTopology::read(HwlocDetail::Processors, why));
  EXPECT_EQ(why, "TUTTI_HWLOC=0");
}

class HwlocTopologyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Hwloc::instance().calls() == nullptr) GTEST_SKIP() << Hwloc::instance().text();
  }
};

TEST_F(HwlocTopologyTest, ShowsThisMachineToManyThreadsAndMovesNone) {
  const cpu_set_t before = ownProcessors().value();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      std::string why;
      const auto topology = HwlocTopology::read(HwlocDetail::Processors, why);
      const cpu_set_t after = ownProcessors().value();
      good += topology && topology->isThisMachine() && CPU_EQUAL(&before, &after) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
}

TEST_F(HwlocTopologyTest, BringsNoVendorsLibraryIntoTheProcess) {
  std::string why;
  ASSERT_TRUE(HwlocTopology::read(HwlocDetail::Devices, why)) << why;
  for (const char* name : {"libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libnvidia-ml.so.1", "libOpenCL.so.1",
                           "libGL.so.1", "libX11.so.6", "libXNVCtrl.so.0", "libze_loader.so.1", "librocm_smi64.so"}) {
    EXPECT_EQ(::dlopen(name, RTLD_NOW | RTLD_NOLOAD), nullptr) << name;
  }
}

TEST_F(HwlocTopologyTest, RefusesATextThatIsNone) {
  std::string why;
  EXPECT_FALSE(HwlocTopology::readXml("<system version=\"1\"/>", why));
  EXPECT_NE(why, "");
}

}  // namespace
}  // namespace tutti
