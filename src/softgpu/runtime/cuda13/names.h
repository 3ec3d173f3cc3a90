// The names of the functions in this folder that CUDA 12 has in their form of CUDA 13 as well, but under names of their
// own, for there the plain name is that of an older form (cuda12). For libcudart.so.12 they are built with those.
#pragma once

#include "softgpu/runtime/api.h"
#include "softgpu/runtime/stream_call.h"

#ifdef SOFTGPU_CUDART_12
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#define cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaMemAdvise cudaMemAdvise_v2
// The toolkit's header has given these names their suffix for the per-thread default stream.
#undef cudaMemPrefetchAsync
#define cudaMemPrefetchAsync SOFTGPU_STREAM_CALL(cudaMemPrefetchAsync_v2)
#undef cudaStreamGetCaptureInfo
#define cudaStreamGetCaptureInfo SOFTGPU_STREAM_CALL(cudaStreamGetCaptureInfo_v3)
#undef cudaStreamUpdateCaptureDependencies
#define cudaStreamUpdateCaptureDependencies SOFTGPU_STREAM_CALL(cudaStreamUpdateCaptureDependencies_v2)
// CUDA 12 has no such form: it is the library's own, for the older one to call.
#undef cudaMemcpyBatchAsync
#define cudaMemcpyBatchAsync SOFTGPU_STREAM_CALL(softgpuMemcpyBatchAsync)
#endif
