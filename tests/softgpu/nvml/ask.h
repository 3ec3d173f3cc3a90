// How the tests call NVML's functions, of which no header is needed: by name, as programs do that load the library.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "softgpu/nvml/abi.h"

namespace tutti::softgpu::nvml::test {

/// The library under test; null with a failed check where it cannot be loaded.
void* library();

/// Calls the function `name`. The arguments must have the types of its parameters.
template <class... Arguments>
Result ask(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library(), name));
  EXPECT_NE(function, nullptr) << name;
  return function == nullptr ? kUnknown : function(arguments...);
}

/// A test that has called nvmlInit.
class Started : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ask("nvmlInit_v2"), kSuccess); }
  void TearDown() override { EXPECT_EQ(ask("nvmlShutdown"), kSuccess); }

  static Device deviceAt(unsigned index) {
    Device device = nullptr;
    EXPECT_EQ(ask("nvmlDeviceGetHandleByIndex_v2", index, &device), kSuccess) << index;
    return device;
  }
  static std::string textOf(const char* name, Device device) {
    char text[96] = {};
    EXPECT_EQ(ask(name, device, &text[0], 96u), kSuccess) << name;
    return text;
  }
  static std::string busIdOf(Device device) {
    PciInfo pci{};
    EXPECT_EQ(ask("nvmlDeviceGetPciInfo_v3", device, &pci), kSuccess);
    return pci.busId;
  }
};

}  // namespace tutti::softgpu::nvml::test
