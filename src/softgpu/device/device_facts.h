// What is known of a simulated GPU before it is made.
#pragma once

#include <string>

namespace tutti::softgpu {

/// Where a device sits in the machine, the same in every process.
struct DeviceFacts {
  int physical = 0;  ///< ordinal without CUDA_VISIBLE_DEVICES
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  int capability = 90;  ///< compute capability times 10

  /// "0000:1b:00.0"
  std::string busId() const;
};

}  // namespace tutti::softgpu
