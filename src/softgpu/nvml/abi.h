// NVML's binary interface, as far as the software GPU fills it in: results, numbers and layouts are those of NVIDIA's
// documentation. NVML's own header is in few installations of CUDA, so none is needed.
#pragma once

#include <cstddef>

namespace tutti::softgpu::nvml {

/// What every function but nvmlErrorString returns.
enum Result : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kTimeout = 10,
  kMemory = 20,
  kVersionMismatch = 25,
  kUnknown = 999,
};

/// A handle; never followed.
struct DeviceTag;
using Device = DeviceTag*;
struct EventSetTag;
using EventSet = EventSetTag*;

inline constexpr unsigned kMaxLinks = 36;  ///< NVLinks of a device

/// The `version` that a struct of NVML's version `version` begins with.
template <class Struct>
constexpr unsigned versionOf(unsigned version) {
  return static_cast<unsigned>(sizeof(Struct)) | version << 24;
}

struct PciInfo {
  char busIdLegacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;     ///< device << 16 | vendor
  unsigned pciSubSystemId;  ///< the same
  char busId[32];
};
static_assert(sizeof(PciInfo) == 68);
/// How much of it callers of older versions have room for.
inline constexpr std::size_t kPciInfoV1Bytes = offsetof(PciInfo, pciSubSystemId);
inline constexpr std::size_t kPciInfoV2Bytes = offsetof(PciInfo, busId);

struct PciInfoExt {
  unsigned version;  ///< 1
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;
  unsigned pciSubSystemId;
  unsigned baseClass;
  unsigned subClass;
  char busId[32];
};
static_assert(sizeof(PciInfoExt) == 64);

struct Uuid {
  unsigned version;  ///< 1
  unsigned type;     ///< kUuidText, kUuidBytes
  union {
    char text[41];
    unsigned char bytes[16];
  } value;
};
static_assert(sizeof(Uuid) == 52);
inline constexpr unsigned kUuidText = 1;
inline constexpr unsigned kUuidBytes = 2;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned version;  ///< 2
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(MemoryV2) == 40);

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;  ///< microseconds since 1970
  long long latency;
  int type;
  Result result;
  union {
    double real;
    unsigned word;
    unsigned long long wide;
  } value;
};
static_assert(sizeof(FieldValue) == 40);
inline constexpr int kUnsignedInt = 1;  ///< FieldValue::type
inline constexpr unsigned kFieldNvLinkCount = 91;
inline constexpr unsigned kFieldC2cLinks = 170;
inline constexpr unsigned kFieldC2cStatus = 171;     ///< of the link in `scope`
inline constexpr unsigned kFieldC2cBandwidth = 172;  ///< the same; MB/s

/// All that versions 1 to 3 tell; the first has no `version`, and each ends where the next goes on.
struct FabricInfo {
  unsigned char cluster[16];
  Result status;
  unsigned clique;
  unsigned char state;
};
static_assert(sizeof(FabricInfo) == 28);
struct FabricInfoV2 {
  unsigned version;
  FabricInfo info;
  unsigned health;
};
static_assert(sizeof(FabricInfoV2) == 36);
struct FabricInfoV3 {
  unsigned version;
  FabricInfo info;
  unsigned health;
  unsigned char summary;
};
static_assert(sizeof(FabricInfoV3) == 40);

/// What is at the far end of an NVLink.
enum LinkEnd : unsigned { kEndGpu = 0, kEndNpu = 1, kEndSwitch = 2, kEndUnknown = 0xff };

/// Capabilities of an NVLink.
inline constexpr unsigned kLinkSystemMemory = 1;
inline constexpr unsigned kLinkSystemAtomics = 3;
inline constexpr unsigned kLinkBridge = 4;
inline constexpr unsigned kLinkCapabilities = 6;  ///< how many there are

/// What nvmlDeviceGetP2PStatus is asked for, and its answers.
inline constexpr unsigned kPeerRead = 0;
inline constexpr unsigned kPeerWrite = 1;
inline constexpr unsigned kPeerNvLink = 2;
inline constexpr unsigned kPeerAtomics = 3;
inline constexpr unsigned kPeerQuestions = 5;  ///< how many there are
inline constexpr unsigned kPeerOk = 0;
inline constexpr unsigned kPeerNotSupported = 5;

/// What two devices have in common: one PCI switch, several, a host bridge, nothing but the machine.
enum Ancestor : unsigned { kInternal = 0, kOneSwitch = 10, kSwitches = 20, kHostBridge = 30, kNode = 40, kSystem = 50 };

}  // namespace tutti::softgpu::nvml
