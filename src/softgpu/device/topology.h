// The machine that a topology file describes, as far as the software GPU shows it.
#pragma once

#include <string>
#include <vector>

#include "softgpu/device/device_facts.h"

namespace tutti::softgpu {

struct MachineFile {
  std::vector<DeviceFacts> devices;  ///< by `dev`; empty: the file is of no use, `complaint` says why
  std::string text;                  ///< the file, cut to the host, with `dev` counted from 0
  std::string complaint;
};

/// Reads the file's host number `host` (in the order in which their host_hash appears; one where there is none). Never
/// fails: a file that cannot be used gives no devices and a complaint.
MachineFile readMachineFile(const std::string& path, int host);

}  // namespace tutti::softgpu
