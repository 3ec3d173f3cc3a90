#include "softgpu/runtime/version.h"

#include <cuda_runtime_api.h>

namespace tutti::softgpu {

const int kRuntimeVersion = CUDART_VERSION;

}  // namespace tutti::softgpu
