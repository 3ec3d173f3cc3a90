// What nvidia-smi knows of the machine's GPUs, from NVML, which is found at run time and may be missing.
#pragma once

#include <string>

#include "base/dl.h"

namespace tutti {

/// One NVML library, started. Any thread.
class Nvml {
 public:
  /// Without the library, or where it does not start, every answer is "unknown".
  static Nvml open(const std::string& library = "libnvidia-ml.so.1");
  /// The driver's own, opened once and for the life of the process.
  static const Nvml& instance();

  /// The number that nvidia-smi gives the device at `busId` ("0000:1b:00.0"); unlike CUDA's ordinal it does not depend on
  /// CUDA_VISIBLE_DEVICES. -1: unknown.
  int indexOf(const std::string& busId) const;

 private:
  DlLibrary library_;   ///< invalid: nothing is known
};

}  // namespace tutti
