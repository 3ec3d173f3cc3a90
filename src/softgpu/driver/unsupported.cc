#include "softgpu/driver/unsupported.h"

#include "softgpu/driver/entry.h"

namespace tutti::softgpu {

int unsupportedFunction(const char* name) {
  return unsupported(name);
}

}  // namespace tutti::softgpu
