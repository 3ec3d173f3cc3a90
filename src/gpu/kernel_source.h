// Where a device's kernels come from, as a plain value.
#pragma once

#include <string>

namespace tutti::gpu {

/// Only the software GPU has a choice: a GPU's kernels are the fatbins inside the library.
struct KernelSource {
  std::string hostFile;  ///< kernels compiled for the host (TUTTI_KERNELS_PATH); empty: beside the library
  bool fatbins = false;  ///< the software GPU runs the PTX of the fatbins in their place (SOFTGPU_KERNELS)

  friend bool operator==(const KernelSource&, const KernelSource&) = default;
};

}  // namespace tutti::gpu
