// The few functions of NVML that tutti calls, declared by their binary interface (names, layouts and numbers are those
// of NVIDIA's documentation; no header of NVML is needed), and what reads a machine with them.
#pragma once

#include <string>
#include <vector>

#include "base/dl.h"
#include "gpu/nvml.h"

namespace tutti::gpu {

namespace nvml {

using Result = int;
using Device = void*;
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidArgument = 2;
inline constexpr Result kNotSupported = 3;

inline constexpr unsigned kMaxLinks = 36;
inline constexpr unsigned kLinkPeerToPeer = 0;  ///< the capability "P2P over this link"
inline constexpr unsigned kPeerRead = 0;
inline constexpr unsigned kPeerWrite = 1;
inline constexpr unsigned kFieldC2cLinks = 170;
inline constexpr unsigned kFieldC2cStatus = 171;     ///< of the link in `scope`
inline constexpr unsigned kFieldC2cBandwidth = 172;  ///< the same; MB/s

struct PciInfo {
  char busIdLegacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;
  unsigned pciSubSystemId;
  char busId[32];
};
static_assert(sizeof(PciInfo) == 68);

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;  ///< 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 long long, 5 int, 6 unsigned short
  Result result;
  union {
    double real;
    unsigned word;
    unsigned long long wide;
    unsigned short half;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

}  // namespace nvml

/// The functions of a library; null where it lacks one. Borrows the library.
struct NvmlCalls {
  explicit NvmlCalls(const DlLibrary& library);
  /// NVML's words for a result, or its number.
  std::string words(nvml::Result result) const;

  const char* (*errorString)(nvml::Result);
  nvml::Result (*count)(unsigned*);
  nvml::Result (*handleByIndex)(unsigned, nvml::Device*);
  nvml::Result (*handleByBusId)(const char*, nvml::Device*);
  nvml::Result (*index)(nvml::Device, unsigned*);
  nvml::Result (*pciInfo)(nvml::Device, nvml::PciInfo*);
  nvml::Result (*capability)(nvml::Device, int* major, int* minor);
  nvml::Result (*migMode)(nvml::Device, unsigned* current, unsigned* pending);
  nvml::Result (*pcieGeneration)(nvml::Device, unsigned*);
  nvml::Result (*pcieWidth)(nvml::Device, unsigned*);
  nvml::Result (*linkState)(nvml::Device, unsigned link, unsigned* active);
  nvml::Result (*linkCapability)(nvml::Device, unsigned link, unsigned capability, unsigned* has);
  nvml::Result (*linkRemotePci)(nvml::Device, unsigned link, nvml::PciInfo*);
  nvml::Result (*linkRemoteType)(nvml::Device, unsigned link, unsigned*);
  nvml::Result (*fieldValues)(nvml::Device, int count, nvml::FieldValue*);
  nvml::Result (*peerStatus)(nvml::Device, nvml::Device, unsigned what, unsigned* status);
};

/// Asks about each GPU in turn and keeps what did not answer as sentences.
class NvmlReader {
 public:
  explicit NvmlReader(const NvmlCalls& calls) : calls_(calls) {}
  NvmlMachine read();

 private:
  void readGpu(unsigned index);
  void readPcie(nvml::Device device, NvmlGpu& gpu);
  void readMig(nvml::Device device, NvmlGpu& gpu);
  void readLinks(nvml::Device device, NvmlGpu& gpu);
  NvmlLink readLink(nvml::Device device, unsigned link) const;
  void readC2c(nvml::Device device, NvmlGpu& gpu);
  void readRefusals();
  /// A sentence about a call that failed for another reason than that the GPU has no such thing.
  void complain(const NvmlGpu& gpu, const char* call, nvml::Result result, const char* unknown);

  NvmlCalls calls_;
  NvmlMachine machine_;
  std::vector<nvml::Device> devices_;
};

}  // namespace tutti::gpu
