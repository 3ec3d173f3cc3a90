// libtutti-kernels-host.so: the kernels come from a static library that is linked as a whole. This file only makes
// the module's one symbol known to the linker as used.
#include "device/simt/simt_host_abi.h"

namespace tutti::device {

[[gnu::used]] static const auto kKeep = &tuttiHostKernels;

}  // namespace tutti::device
