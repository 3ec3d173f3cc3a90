// What NVML tells of the software GPU's devices, and that it is what the driver tells. Three devices, of which
// CUDA_VISIBLE_DEVICES shows the third and the first.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "softgpu/cuda_fixture.h"
#include "softgpu/nvml/ask.h"

namespace tutti::softgpu::nvml::test {

void* library() {
  static void* loaded = dlopen(SOFTGPU_NVML, RTLD_NOW);
  EXPECT_NE(loaded, nullptr) << dlerror();
  return loaded;
}

namespace {

TEST(NvmlInit, CountsAndNothingAnswersWithout) {
  unsigned count = 0;
  EXPECT_EQ(ask("nvmlDeviceGetCount_v2", &count), kUninitialized);
  EXPECT_EQ(ask("nvmlDeviceGetPowerUsage", Device(nullptr), &count), kUninitialized) << "not supported";
  EXPECT_EQ(ask("nvmlShutdown"), kUninitialized);
  EXPECT_EQ(ask("nvmlInit"), kSuccess);
  EXPECT_EQ(ask("nvmlInitWithFlags", 1u), kSuccess);
  EXPECT_EQ(ask("nvmlShutdown"), kSuccess);
  EXPECT_EQ(ask("nvmlDeviceGetCount_v2", &count), kSuccess) << "begun twice, ended once";
  EXPECT_EQ(ask("nvmlShutdown"), kSuccess);
  EXPECT_EQ(ask("nvmlDeviceGetCount_v2", &count), kUninitialized);
  EXPECT_EQ(ask("nvmlInitWithFlags", 0x100u), kInvalidArgument);
}

using Nvml = Started;

TEST_F(Nvml, ListsAllDevicesWhateverCudaShows) {
  unsigned count = 0;
  EXPECT_EQ(ask("nvmlDeviceGetCount", &count), kSuccess);
  EXPECT_EQ(count, 3U);
  Device device = nullptr;
  EXPECT_EQ(ask("nvmlDeviceGetHandleByIndex_v2", 3u, &device), kInvalidArgument);
}

TEST_F(Nvml, FindsADeviceByEachOfItsNames) {
  for (unsigned i = 0; i < 3; ++i) {
    const Device device = deviceAt(i);
    unsigned index = 9;
    EXPECT_EQ(ask("nvmlDeviceGetIndex", device, &index), kSuccess);
    EXPECT_EQ(index, i);
    const std::string uuid = textOf("nvmlDeviceGetUUID", device);
    Uuid versioned{versionOf<Uuid>(1), kUuidText, {}};
    ASSERT_LT(uuid.size(), sizeof(versioned.value.text));
    uuid.copy(versioned.value.text, uuid.size());
    Device found[4] = {};
    EXPECT_EQ(ask("nvmlDeviceGetHandleByUUID", uuid.c_str(), &found[0]), kSuccess);
    EXPECT_EQ(ask("nvmlDeviceGetHandleByUUIDV", &versioned, &found[1]), kSuccess);
    EXPECT_EQ(ask("nvmlDeviceGetHandleBySerial", textOf("nvmlDeviceGetSerial", device).c_str(), &found[2]), kSuccess);
    EXPECT_EQ(ask("nvmlDeviceGetHandleByPciBusId_v2", busIdOf(device).c_str(), &found[3]), kSuccess);
    for (const Device one : found) EXPECT_EQ(one, device);
  }
  Device none = nullptr;
  EXPECT_EQ(ask("nvmlDeviceGetHandleByPciBusId_v2", "0000:77:00.0", &none), kNotFound);
  EXPECT_EQ(ask("nvmlDeviceGetHandleByPciBusId_v2", "the first one", &none), kInvalidArgument);
  EXPECT_EQ(ask("nvmlDeviceGetHandleByUUID", "GPU-0", &none), kNotFound);
}

TEST_F(Nvml, RefusesWhatIsNoDeviceAndTooLittleRoom) {
  char text[8] = {};
  unsigned number = 0;
  PciInfo pci{};
  const auto beyond = reinterpret_cast<Device>(reinterpret_cast<char*>(deviceAt(2)) + 1);
  for (const Device bad : {Device(nullptr), reinterpret_cast<Device>(&pci), beyond}) {
    EXPECT_EQ(ask("nvmlDeviceGetIndex", bad, &number), kInvalidArgument);
    EXPECT_EQ(ask("nvmlDeviceGetPciInfo_v3", bad, &pci), kInvalidArgument);
  }
  EXPECT_EQ(ask("nvmlDeviceGetName", deviceAt(0), &text[0], 8u), kInsufficientSize);
  EXPECT_EQ(ask("nvmlDeviceGetName", deviceAt(0), static_cast<char*>(nullptr), 8u), kInvalidArgument);
  MemoryV2 memory{};
  EXPECT_EQ(ask("nvmlDeviceGetMemoryInfo_v2", deviceAt(0), &memory), kVersionMismatch);
}

TEST_F(Nvml, WritesNoMoreThanCallersOfOldVersionsHaveRoomFor) {
  for (const auto& [name, bytes] :
       {std::pair("nvmlDeviceGetPciInfo", std::size_t{32}), std::pair("nvmlDeviceGetPciInfo_v2", std::size_t{36})}) {
    PciInfo pci{};
    std::memset(&pci, 0x5a, sizeof(pci));
    EXPECT_EQ(ask(name, deviceAt(1), &pci), kSuccess);
    EXPECT_STREQ(pci.busIdLegacy, "0000:11:00.0");
    const auto* raw = reinterpret_cast<const unsigned char*>(&pci);
    for (std::size_t i = bytes; i < sizeof(pci); ++i) ASSERT_EQ(raw[i], 0x5a) << name << " wrote byte " << i;
  }
}

TEST_F(Nvml, SaysNotSupportedOfWhatIsNotThere) {
  unsigned value = 7;
  EXPECT_EQ(ask("nvmlDeviceGetPowerUsage", deviceAt(0), &value), kNotSupported);
  EXPECT_EQ(ask("nvmlDeviceGetTemperature", deviceAt(0), 0u, &value), kNotSupported);
  EXPECT_EQ(ask("nvmlDeviceGetNvLinkState", deviceAt(0), 0u, &value), kNotSupported) << "no topology file";
  EXPECT_EQ(ask("nvmlDeviceGetTopologyCommonAncestor", deviceAt(0), deviceAt(1), &value), kNotSupported);
  EXPECT_EQ(value, 7U);
  const auto words = reinterpret_cast<const char* (*)(int)>(dlsym(library(), "nvmlErrorString"));
  EXPECT_STREQ(words(kNotSupported), "Not Supported");
  EXPECT_STREQ(words(-5), "Unknown Error");
}

TEST_F(Nvml, ToolsAreToldOfModesThatAreOff) {
  for (const char* name : {"nvmlDeviceGetPersistenceMode", "nvmlDeviceGetComputeMode", "nvmlDeviceIsMigDeviceHandle"}) {
    unsigned mode = 7;
    EXPECT_EQ(ask(name, deviceAt(0), &mode), kSuccess) << name;
    EXPECT_EQ(mode, 0U) << name;
  }
  unsigned processes = 7;
  EXPECT_EQ(ask("nvmlDeviceGetComputeRunningProcesses", deviceAt(0), &processes, static_cast<void*>(nullptr)),
            kSuccess);
  EXPECT_EQ(processes, 0U);
  FabricInfoV3 fabric{versionOf<FabricInfoV3>(3), {}, 7, 7};
  fabric.info.state = 3;
  EXPECT_EQ(ask("nvmlDeviceGetGpuFabricInfoV", deviceAt(0), static_cast<void*>(&fabric)), kSuccess);
  EXPECT_EQ(fabric.info.state, 0U) << "no fabric";
  fabric.version = 5;
  EXPECT_EQ(ask("nvmlDeviceGetGpuFabricInfoV", deviceAt(0), static_cast<void*>(&fabric)), kVersionMismatch);
}

TEST_F(Nvml, WaitsForEventsAsLongAsItIsAskedTo) {
  EventSet set = nullptr;
  char event[32];
  ASSERT_EQ(ask("nvmlEventSetCreate", &set), kSuccess);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ask("nvmlEventSetWait_v2", set, static_cast<void*>(event), 20u), kTimeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_EQ(ask("nvmlDeviceRegisterEvents", deviceAt(0), 8ull, set), kNotSupported);
  EXPECT_EQ(ask("nvmlEventSetFree", set), kSuccess);
  EXPECT_EQ(ask("nvmlEventSetWait_v2", set, static_cast<void*>(event), 20u), kInvalidArgument) << "it is gone";
}

std::string uuidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

/// NVML's device behind one of the driver's, found by its bus id.
Device sameDevice(CUdevice ordinal) {
  char busId[32] = {};
  EXPECT_CU(cuDeviceGetPCIBusId(busId, sizeof(busId), ordinal));
  Device device = nullptr;
  EXPECT_EQ(ask("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(busId), &device), kSuccess) << busId;
  return device;
}

TEST_F(Nvml, AgreesWithTheDriverOnEachDevice) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  int count = 0;
  EXPECT_CU(cuDeviceGetCount(&count));
  ASSERT_EQ(count, 2);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const Device device = sameDevice(ordinal);
    EXPECT_EQ(device, deviceAt(ordinal == 0 ? 2 : 0)) << "as CUDA_VISIBLE_DEVICES says";
    CUuuid uuid{};
    char name[96] = {};
    std::size_t total = 0;
    int capability[2] = {};
    EXPECT_CU(cuDeviceGetUuid(&uuid, ordinal));
    EXPECT_CU(cuDeviceGetName(name, sizeof(name), ordinal));
    EXPECT_CU(cuDeviceTotalMem(&total, ordinal));
    EXPECT_CU(cuDeviceGetAttribute(&capability[0], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal));
    EXPECT_CU(cuDeviceGetAttribute(&capability[1], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal));
    Memory memory{};
    int told[2] = {};
    EXPECT_EQ(ask("nvmlDeviceGetMemoryInfo", device, &memory), kSuccess);
    EXPECT_EQ(ask("nvmlDeviceGetCudaComputeCapability", device, &told[0], &told[1]), kSuccess);
    EXPECT_EQ(textOf("nvmlDeviceGetUUID", device), uuidText(uuid));
    EXPECT_EQ(textOf("nvmlDeviceGetName", device), name);
    EXPECT_EQ(memory.total, total);
    EXPECT_EQ(told[0], capability[0]);
    EXPECT_EQ(told[1], capability[1]);
  }
  int versions[2] = {};
  EXPECT_CU(cuDriverGetVersion(&versions[0]));
  EXPECT_EQ(ask("nvmlSystemGetCudaDriverVersion_v2", &versions[1]), kSuccess);
  EXPECT_EQ(versions[0], versions[1]);
}

TEST_F(Nvml, CountsTheMemoryThatTheDriverHasGivenOut) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  EXPECT_CU(cuDevicePrimaryCtxRetain(&context, 0));
  EXPECT_CU(cuCtxSetCurrent(context));
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemAlloc(&pointer, 1 << 20));
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_CU(cuMemGetInfo(&free, &total));
  MemoryV2 memory{versionOf<MemoryV2>(2), 0, 0, 0, 0};
  EXPECT_EQ(ask("nvmlDeviceGetMemoryInfo_v2", sameDevice(0), &memory), kSuccess);
  EXPECT_EQ(memory.used, 1U << 20);
  EXPECT_EQ(memory.free, free);
  EXPECT_EQ(memory.total, total);
  Memory other{};
  EXPECT_EQ(ask("nvmlDeviceGetMemoryInfo", sameDevice(1), &other), kSuccess);
  EXPECT_EQ(other.used, 0U);
  EXPECT_EQ(ask("nvmlDeviceGetMemoryInfo", deviceAt(1), &other), kSuccess);
  EXPECT_EQ(other.used, 0U) << "not shown to CUDA";
  EXPECT_CU(cuMemFree(pointer));
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
}

}  // namespace
}  // namespace tutti::softgpu::nvml::test
