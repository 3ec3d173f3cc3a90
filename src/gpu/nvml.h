// What nvidia-smi knows of the machine's GPUs, from NVML, which is found at run time and may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dl.h"

namespace tutti::gpu {

/// What NVML calls the far end of an NVLink.
enum class NvmlRemote : std::uint8_t { Gpu, Npu, Switch, Unknown };

/// One active NVLink that carries peer traffic.
struct NvmlLink {
  NvmlRemote remote = NvmlRemote::Unknown;
  std::string busId;  ///< of the far end, lower case; empty: not told
};

/// One GPU of the machine, visible to CUDA or not. What NVML did not answer keeps its default.
struct NvmlGpu {
  int index = -1;
  std::string busId;          ///< "00000000:1b:00.0", lower case
  int computeCapability = 0;  ///< major * 10 + minor
  bool mig = false;           ///< divided into instances
  int pcieGeneration = 0;     ///< the most that GPU and slot can, 0: unknown
  int pcieWidth = 0;          ///< lanes
  std::vector<NvmlLink> links;
  int c2cLinks = 0;
  int c2cBandwidth = 0;  ///< MB/s of one link
};

/// Two GPUs between which the driver refuses peer access.
struct NvmlRefusal {
  int a = -1;  ///< places in NvmlMachine::gpus
  int b = -1;
  std::string reason;  ///< "chipset not supported"
};

struct NvmlMachine {
  std::vector<NvmlGpu> gpus;  ///< by index
  bool complete = false;      ///< no GPU that this process may know of is missing
  std::vector<NvmlRefusal> refusals;
  std::vector<std::string> unknown;  ///< a sentence each: what did not answer, and what is not known therefore
};

/// One NVML library, started. Any thread.
class Nvml {
 public:
  /// Without the library, or where it does not start, every answer is "unknown".
  static Nvml open(const std::string& library = "libnvidia-ml.so.1");
  /// The driver's own, opened once and for the life of the process.
  static const Nvml& instance();

  /// The number that nvidia-smi gives the device at `busId` ("0000:1b:00.0"); unlike CUDA's ordinal it does not depend
  /// on CUDA_VISIBLE_DEVICES. -1: unknown.
  int indexOf(const std::string& busId) const;

  /// Everything the topology needs. Never fails: see NvmlMachine::unknown.
  NvmlMachine readMachine() const;

 private:
  DlLibrary library_;  ///< invalid: nothing is known
  std::string why_;    ///< it is invalid
};

}  // namespace tutti::gpu
