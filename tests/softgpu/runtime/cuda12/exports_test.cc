// What libcudart.so.12 exports: the names of CUDA 12.8's, under its version, and no others.
#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "softgpu/runtime/cuda12/abi.h"

namespace tutti::softgpu::cuda12::test {
namespace {

constexpr const char* kVersion = "libcudart.so.12";

std::set<std::string> listed() {
  std::ifstream file(SOFTGPU_EXPORTED_NAMES_12);
  std::set<std::string> names;
  for (std::string name; std::getline(file, name);) names.insert(name);
  return names;
}

TEST(Cuda12Exports, EverySymbolOfTheToolkitHasTheVersionNode) {
  const std::set<std::string> names = listed();
  for (const std::string& name : names) EXPECT_NE(dlvsym(RTLD_DEFAULT, name.c_str(), kVersion), nullptr) << name;
  EXPECT_EQ(names.size(), 435u);
}

TEST(Cuda12Exports, NothingElseIsExported) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      popen("nm -D --defined-only --without-symbol-versions " SOFTGPU_CUDART_12, "r"), pclose);
  ASSERT_NE(pipe, nullptr);
  const std::set<std::string> names = listed();
  int seen = 0;
  char name[256];
  while (std::fscanf(pipe.get(), "%*s %*s %255s", name) == 1) {
    if (std::string(name) == kVersion) continue;
    EXPECT_TRUE(names.contains(name)) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 435);
}

TEST(Cuda12Exports, TheVersionNodeOf13IsNotThere) {
  void* library = dlopen(SOFTGPU_CUDART_12, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlvsym(library, "cudaMalloc", kVersion), nullptr);
  EXPECT_EQ(dlvsym(library, "cudaMalloc", "libcudart.so.13"), nullptr);
}

TEST(Cuda12Exports, AnUnsupportedCallSaysSoAndKeepsTheError) {
  cudaGetLastError();
  EXPECT_EQ(cudaLaunchCooperativeKernelMultiDevice(nullptr, 0, 0), kNotSupported);
  EXPECT_EQ(cudaGetLastError(), kNotSupported);
  EXPECT_EQ(cudaGetLastError(), kSuccess);
}

TEST_F(Cuda12, BothVersionsAreInOneProcessWithoutTakingEachOthersCalls) {
  void* other = dlopen(SOFTGPU_CUDART_13, RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(other, nullptr) << dlerror();
  const auto version13 = reinterpret_cast<int (*)(int*)>(dlvsym(other, "cudaRuntimeGetVersion", "libcudart.so.13"));
  ASSERT_NE(version13, nullptr);
  int version = 0;
  EXPECT_EQ(version13(&version), kSuccess);
  EXPECT_EQ(version / 1000, 13);
  EXPECT_EQ(cudaRuntimeGetVersion(&version), kSuccess);
  EXPECT_EQ(version, 12090);
  // The devices are the same, the last errors are not.
  const auto setDevice13 = reinterpret_cast<int (*)(int)>(dlsym(other, "cudaSetDevice"));
  const auto lastError13 = reinterpret_cast<int (*)()>(dlsym(other, "cudaGetLastError"));
  EXPECT_EQ(setDevice13(99), kInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), kSuccess);
  EXPECT_EQ(lastError13(), kInvalidDevice);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 64), kSuccess);
  const auto free13 = reinterpret_cast<int (*)(void*)>(dlsym(other, "cudaFree"));
  EXPECT_EQ(free13(memory), kSuccess);
  EXPECT_NE(cudaFree(memory), kSuccess) << "what one has freed is gone for the other";
  cudaGetLastError();
}

}  // namespace
}  // namespace tutti::softgpu::cuda12::test
