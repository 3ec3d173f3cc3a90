// Calls that came after CUDA 13.0, whose headers do not declare them. Built twice: as it stands, and for the per-thread
// default stream (_ptsz).
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/stream_call.h"

using namespace tutti::softgpu;

namespace {

/// How a host function waits for its turn. Both are the same here: its thread sleeps.
constexpr unsigned kHostTaskSpinWait = 1;

/// Whether the copy is one between two pointers, in an order that there is.
bool isKnown(const cudaMemcpy3DBatchOp& copy) {
  return copy.src.type == cudaMemcpyOperandTypePointer && copy.dst.type == cudaMemcpyOperandTypePointer &&
         copy.srcAccessOrder >= cudaMemcpySrcAccessOrderStream && copy.srcAccessOrder <= cudaMemcpySrcAccessOrderAny;
}

/// Rows without a length lie close together, and so do layers without a height.
cudaPitchedPtr placeOf(const cudaMemcpy3DOperand& operand, const cudaExtent& extent) {
  const auto& pointer = operand.op.ptr;
  return {pointer.ptr, pointer.rowLength != 0 ? pointer.rowLength : extent.width, extent.width,
          pointer.layerHeight != 0 ? pointer.layerHeight : extent.height};
}

}  // namespace

extern "C" {

cudaError_t SOFTGPU_STREAM_CALL(cudaLaunchHostFunc_v2)(cudaStream_t stream, cudaHostFn_t function, void* userData,
                                                       unsigned syncMode) {
  return syncMode > kHostTaskSpinWait ? keep(cudaErrorInvalidValue) : cudaLaunchHostFunc(stream, function, userData);
}

cudaError_t SOFTGPU_STREAM_CALL(cudaMemcpyWithAttributesAsync)(void* to, const void* from, size_t bytes,
                                                               cudaMemcpyAttributes* attributes, cudaStream_t stream) {
  if (attributes == nullptr) return keep(cudaErrorInvalidValue);
  size_t firstCopy = 0;
  return cudaMemcpyBatchAsync(&to, &from, &bytes, 1, attributes, &firstCopy, 1, stream);
}

cudaError_t SOFTGPU_STREAM_CALL(cudaMemcpy3DWithAttributesAsync)(cudaMemcpy3DBatchOp* copy, unsigned long long flags,
                                                                 cudaStream_t stream) {
  if (copy == nullptr || flags != 0) return keep(cudaErrorInvalidValue);
  if (copy->src.type == cudaMemcpyOperandTypeArray || copy->dst.type == cudaMemcpyOperandTypeArray)
    return keep(cudaErrorNotSupported);
  if (!isKnown(*copy)) return keep(cudaErrorInvalidValue);
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = placeOf(copy->src, copy->extent);
  parameters.dstPtr = placeOf(copy->dst, copy->extent);
  parameters.extent = copy->extent;
  parameters.kind = cudaMemcpyDefault;
  return cudaMemcpy3DAsync(&parameters, stream);
}

}  // extern "C"
