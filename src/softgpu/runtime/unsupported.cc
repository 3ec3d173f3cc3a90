#include "softgpu/runtime/unsupported.h"

#include "softgpu/runtime/call.h"
#include "softgpu/runtime/report.h"

namespace tutti::softgpu {

int unsupported(const char* name) {
  reportOnce(name, "%s is not supported by the software GPU", name);
  return keep(cudaErrorNotSupported);
}

}  // namespace tutti::softgpu
