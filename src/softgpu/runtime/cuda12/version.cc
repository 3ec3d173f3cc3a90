#include "softgpu/runtime/version.h"

namespace tutti::softgpu {

// The last of CUDA 12. It exports what 12.8 does.
const int kRuntimeVersion = 12090;

}  // namespace tutti::softgpu
