// What is known of a simulated GPU before it is made.
#pragma once

#include <string>
#include <vector>

#include "softgpu/device/settings.h"
#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

/// The name of every device, and the version of CUDA that its driver is of.
inline constexpr const char* kDeviceName = "tutti software GPU";
inline constexpr int kCudaVersion = 13000;

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

struct MachineFile;

/// What names a device in every process of this machine: `host` is that of SOFTGPU_HOST, `boot` this machine's boot id.
CUuuid uuidOf(const DeviceFacts& facts, int host, const std::string& boot);
/// The id of this boot of the machine, read from /proc. One that cannot be read is named on stderr; then a device has
/// another name in each process.
std::string readBootId();

/// The devices that the settings describe: by number, or those of a topology file in order of `dev`, which is put into
/// `file`. A file that is of no use is named on stderr.
std::vector<DeviceFacts> describeDevices(const Settings& settings, MachineFile& file);

}  // namespace tutti::softgpu
