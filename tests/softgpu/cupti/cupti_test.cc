// Profilers that load CUPTI by its name are refused in words, by every function that it has. Built for each version.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace tutti::softgpu::cupti::test {
namespace {

constexpr int kNotSupported = 27;

template <class Function>
Function find(const char* name) {
  static void* library = dlopen(SOFTGPU_CUPTI, RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  // PyTorch's wheel is linked with this version.
  return reinterpret_cast<Function>(dlvsym(library, name, SOFTGPU_CUPTI_NODE));
}

TEST(Cupti, EveryFunctionOfTheInterfaceIsThere) {
  std::ifstream names(SOFTGPU_CUPTI_NAMES);
  int seen = 0;
  for (std::string name; std::getline(names, name);) {
    if (name.starts_with("#")) continue;
    EXPECT_NE(find<void*>(name.c_str()), nullptr) << name;
    ++seen;
  }
  EXPECT_GE(seen, 190);
}

TEST(Cupti, RefusesSubscribersInWords) {
  void* subscriber = nullptr;
  testing::internal::CaptureStderr();
  const auto subscribe = find<int (*)(void**, void*, void*)>("cuptiSubscribe");
  EXPECT_EQ(subscribe(&subscriber, nullptr, nullptr), kNotSupported);
  EXPECT_EQ(subscribe(&subscriber, nullptr, nullptr), kNotSupported);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "softgpu: CUPTI is not supported (cuptiSubscribe was called): profilers see no kernels, copies or calls of "
            "CUDA\n")
      << "once";
  const char* words = nullptr;
  EXPECT_EQ(find<int (*)(int, const char**)>("cuptiGetResultString")(kNotSupported, &words), 0);
  EXPECT_STREQ(words, "CUPTI_ERROR_NOT_SUPPORTED");
  EXPECT_EQ(find<int (*)(int, const char**)>("cuptiGetResultString")(12345, &words), 1);
  std::uint32_t version = 0;
  EXPECT_EQ(find<int (*)(std::uint32_t*)>("cuptiGetVersion")(&version), 0);
  EXPECT_EQ(version, static_cast<std::uint32_t>(SOFTGPU_CUPTI_API));
}

}  // namespace
}  // namespace tutti::softgpu::cupti::test
