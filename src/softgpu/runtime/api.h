// The functions that the library exports, as the toolkit declares them, and the frame of a call.
#pragma once

#include "softgpu/runtime/call.h"
// After cuda.h: in the sources that are built a second time for the per-thread default stream, only the runtime's
// names get their suffix (cudaMemcpyAsync_ptsz); the driver's names stay, the stream handle tells the difference.
#ifdef SOFTGPU_PER_THREAD_DEFAULT_STREAM
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#endif
#include <cuda_runtime_api.h>
