// Entry points that exist so that programs can link and look them up, and that say they are not supported.
// cuda.h is not included here: the arguments do not matter.
#include "softgpu/say.h"

#define UNSUPPORTED(name)                                           \
  extern "C" __attribute__((visibility("default"))) int name(void); \
  extern "C" int name(void) {                                       \
    static bool told = false;                                       \
    if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED)) {      \
      tutti::softgpu::say("%s is not supported", #name);            \
    }                                                               \
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */                      \
  }

UNSUPPORTED(cuMulticastCreate)
UNSUPPORTED(cuMulticastAddDevice)
UNSUPPORTED(cuMulticastBindMem)
UNSUPPORTED(cuMulticastBindAddr)
UNSUPPORTED(cuMulticastUnbind)
UNSUPPORTED(cuMulticastGetGranularity)
UNSUPPORTED(cuGraphAddNode_v2)
UNSUPPORTED(cuGraphExecUpdate_v2)
UNSUPPORTED(cuModuleGetGlobal_v2)
UNSUPPORTED(cuModuleGetFunctionCount)
UNSUPPORTED(cuModuleEnumerateFunctions)
UNSUPPORTED(cuLibraryGetGlobal)
UNSUPPORTED(cuLibraryLoadFromFile)
UNSUPPORTED(cuKernelGetAttribute)
UNSUPPORTED(cuKernelSetAttribute)
UNSUPPORTED(cuFuncGetParamInfo)
UNSUPPORTED(cuMemPoolExportPointer)
UNSUPPORTED(cuMemPoolImportPointer)
UNSUPPORTED(cuMemPoolExportToShareableHandle)
UNSUPPORTED(cuMemPoolImportFromShareableHandle)
UNSUPPORTED(cuStreamGetAttribute)
UNSUPPORTED(cuStreamSetAttribute)
UNSUPPORTED(cuStreamCopyAttributes)
UNSUPPORTED(cuStreamAttachMemAsync)
UNSUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
