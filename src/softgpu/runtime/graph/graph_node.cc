// The nodes of a graph: adding them, asking about them, patching copies in an instantiated graph.
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/code/image.h"

using namespace tutti::softgpu;

static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));

namespace {

/// One row of `count` bytes; which memory the two pointers are is the driver's business.
CUDA_MEMCPY3D oneRow(void* to, const void* from, size_t count) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = toDevice(from);
  copy.srcPitch = count;
  copy.srcHeight = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = toDevice(to);
  copy.dstPitch = count;
  copy.dstHeight = 1;
  copy.WidthInBytes = count;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D translate(const cudaMemcpy3DParms& p) {
  CUDA_MEMCPY3D copy = oneRow(p.dstPtr.ptr, p.srcPtr.ptr, p.extent.width);
  copy.srcXInBytes = p.srcPos.x;
  copy.srcY = p.srcPos.y;
  copy.srcZ = p.srcPos.z;
  copy.srcPitch = p.srcPtr.pitch;
  copy.srcHeight = p.srcPtr.ysize;
  copy.dstXInBytes = p.dstPos.x;
  copy.dstY = p.dstPos.y;
  copy.dstZ = p.dstPos.z;
  copy.dstPitch = p.dstPtr.pitch;
  copy.dstHeight = p.dstPtr.ysize;
  copy.Height = p.extent.height;
  copy.Depth = p.extent.depth;
  return copy;
}

bool usesArrays(const cudaMemcpy3DParms& p) {
  return p.srcArray != nullptr || p.dstArray != nullptr;
}

CUcontext currentContext() {
  CUcontext context = nullptr;
  return CU(cuCtxGetCurrent, &context) == CUDA_SUCCESS ? context : nullptr;
}

/// The driver's parameters of a kernel node.
cudaError_t translate(const cudaKernelNodeParams* p, CUDA_KERNEL_NODE_PARAMS* result) {
  if (p == nullptr) return cudaErrorInvalidValue;
  *result = {};
  result->gridDimX = p->gridDim.x;
  result->gridDimY = p->gridDim.y;
  result->gridDimZ = p->gridDim.z;
  result->blockDimX = p->blockDim.x;
  result->blockDimY = p->blockDim.y;
  result->blockDimZ = p->blockDim.z;
  result->sharedMemBytes = p->sharedMemBytes;
  result->kernelParams = p->kernelParams;
  result->extra = p->extra;
  result->ctx = currentContext();
  return findFunction(p->func, &result->func);
}

}  // namespace

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* parameters) {
  return inContext([&] {
    CUDA_KERNEL_NODE_PARAMS kernel;
    if (const cudaError_t error = translate(parameters, &kernel); error != cudaSuccess) return error;
    return toRuntimeError(CU(cuGraphAddKernelNode, node, graph, dependencies, count, &kernel));
  });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  return inContext([&] {
    CUDA_KERNEL_NODE_PARAMS kernel;
    if (const cudaError_t error = translate(parameters, &kernel); error != cudaSuccess) return error;
    return toRuntimeError(CU(cuGraphExecKernelNodeSetParams, exec, node, &kernel));
  });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t dependencyCount, void* to, const void* from, size_t count,
                                     cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return keep(cudaErrorInvalidMemcpyDirection);
  return inContext([&] {
    const CUDA_MEMCPY3D copy = oneRow(to, from, count);
    return CU(cuGraphAddMemcpyNode, node, graph, dependencies, dependencyCount, &copy, currentContext());
  });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t dependencyCount, const cudaMemcpy3DParms* parameters) {
  if (parameters == nullptr) return keep(cudaErrorInvalidValue);
  if (usesArrays(*parameters)) return keep(cudaErrorNotSupported);
  return inContext([&] {
    const CUDA_MEMCPY3D copy = translate(*parameters);
    return CU(cuGraphAddMemcpyNode, node, graph, dependencies, dependencyCount, &copy, currentContext());
  });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to, const void* from,
                                               size_t count, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return keep(cudaErrorInvalidMemcpyDirection);
  return inContext([&] {
    const CUDA_MEMCPY3D copy = oneRow(to, from, count);
    return CU(cuGraphExecMemcpyNodeSetParams, exec, node, &copy, currentContext());
  });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters) {
  if (parameters == nullptr) return keep(cudaErrorInvalidValue);
  if (usesArrays(*parameters)) return keep(cudaErrorNotSupported);
  return inContext([&] {
    const CUDA_MEMCPY3D copy = translate(*parameters);
    return CU(cuGraphExecMemcpyNodeSetParams, exec, node, &copy, currentContext());
  });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* parameters) {
  return inContext([&] {
    return CU(cuGraphAddMemsetNode, node, graph, dependencies, count,
              reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(parameters), currentContext());
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 size_t count, const cudaHostNodeParams* parameters) {
  return inContext([&] {
    return CU(cuGraphAddHostNode, node, graph, dependencies, count,
              reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(parameters));
  });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       size_t count, cudaGraph_t child) {
  return inContext([&] { return CU(cuGraphAddChildGraphNode, node, graph, dependencies, count, child); });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t count) {
  return inContext([&] { return CU(cuGraphAddEmptyNode, node, graph, dependencies, count); });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                        size_t count, cudaEvent_t event) {
  return inContext([&] { return CU(cuGraphAddEventRecordNode, node, graph, dependencies, count, event); });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                      size_t count, cudaEvent_t event) {
  return inContext([&] { return CU(cuGraphAddEventWaitNode, node, graph, dependencies, count, event); });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return inContext([&] { return CU(cuGraphDestroyNode, node); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (type == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] {
    CUgraphNodeType value = CU_GRAPH_NODE_TYPE_EMPTY;
    const CUresult result = CU(cuGraphNodeGetType, node, &value);
    if (result == CUDA_SUCCESS) *type = static_cast<cudaGraphNodeType>(value);
    return result;
  });
}

}  // extern "C"
