// Every function of NVML's interface can be linked and looked up, and its structs have the layouts of NVML's header.
#include <fstream>
#include <regex>
#include <sstream>

#include "softgpu/nvml/ask.h"

#if __has_include(<nvml.h>)
#include <nvml.h>
#endif

namespace tutti::softgpu::nvml::test {
namespace {

std::string contentOf(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(NvmlExports, EveryFunctionOfTheInterfaceIsThere) {
  int seen = 0;
  for (const char* path : {SOFTGPU_NVML_NAMES, SOFTGPU_NVML_ALIASES}) {
    std::istringstream lines(contentOf(path));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#")) continue;
      const std::string name = line.substr(0, line.find('='));
      EXPECT_NE(dlsym(library(), name.c_str()), nullptr) << name;
      ++seen;
    }
  }
  EXPECT_GE(seen, 430);
}

TEST(NvmlExports, NoFunctionOfTheHeaderIsMissing) {
  const std::string header = contentOf(SOFTGPU_NVML_HEADER);
  if (header.empty()) GTEST_SKIP() << "this toolkit is without " << SOFTGPU_NVML_HEADER;
  const std::regex declared("DECLDIR\\s+(?:char\\s*\\*\\s*)?(nvml[A-Z]\\w*)\\s*\\(");
  int seen = 0;
  for (std::sregex_iterator it(header.begin(), header.end(), declared), end; it != end; ++it, ++seen) {
    EXPECT_NE(dlsym(library(), (*it)[1].str().c_str()), nullptr) << (*it)[1].str();
  }
  EXPECT_GE(seen, 200);
}

#if defined(NVML_API_VERSION) && NVML_API_VERSION >= 13
static_assert(sizeof(nvmlPciInfo_t) == sizeof(PciInfo) && offsetof(nvmlPciInfo_t, busId) == offsetof(PciInfo, busId));
static_assert(sizeof(nvmlPciInfoExt_v1_t) == sizeof(PciInfoExt) && nvmlPciInfoExt_v1 == versionOf<PciInfoExt>(1));
static_assert(sizeof(nvmlMemory_t) == sizeof(Memory) && sizeof(nvmlUtilization_t) == sizeof(Utilization));
static_assert(nvmlMemory_v2 == versionOf<MemoryV2>(2) && offsetof(nvmlMemory_v2_t, used) == offsetof(MemoryV2, used));
static_assert(nvmlUUID_v1 == versionOf<Uuid>(1) && offsetof(nvmlUUID_v1_t, value) == offsetof(Uuid, value));
static_assert(sizeof(nvmlFieldValue_t) == sizeof(FieldValue));
static_assert(offsetof(nvmlFieldValue_t, nvmlReturn) == offsetof(FieldValue, result));
static_assert(sizeof(nvmlGpuFabricInfo_t) == sizeof(FabricInfo));
static_assert(nvmlGpuFabricInfo_v2 == versionOf<FabricInfoV2>(2) && nvmlGpuFabricInfo_v3 == versionOf<FabricInfoV3>(3));
static_assert(offsetof(nvmlGpuFabricInfo_v3_t, healthMask) == offsetof(FabricInfoV3, health));
#endif

}  // namespace
}  // namespace tutti::softgpu::nvml::test
