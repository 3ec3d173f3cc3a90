// What functions are: attributes, parameters, occupancy.
#include <algorithm>

#include "softgpu/driver/code/occupancy.h"
#include "softgpu/driver/entry.h"
#include "softgpu/ptx_library.h"

using namespace tutti::softgpu;

namespace {

/// Runs `body` on the function; handles are not looked up, for launches are many.
template <class Body>
CUresult withFunction(const char* name, CUfunction handle, Body&& body) {
  return call(name, [&]() -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(*reinterpret_cast<Function*>(handle));
  });
}

CUresult attributeOf(int* value, CUfunction_attribute attribute, const Function& function) {
  switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(function.maxThreads);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function.staticSharedBytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = function.ptx == nullptr ? 0 : static_cast<int>(function.ptx->localBytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.dynamicSharedLimit;
      break;
    default:
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult setDynamicSharedLimit(Function& function, int bytes) {
  const int most = kMostSharedBytes - static_cast<int>(function.staticSharedBytes);
  if (function.ptx != nullptr && (bytes < 0 || bytes > most)) return CUDA_ERROR_INVALID_VALUE;
  function.dynamicSharedLimit = bytes;
  return CUDA_SUCCESS;
}

struct BlockChoice {
  CUoccupancyB2DSize dynamicBytes;  ///< null: the same for all sizes
  std::size_t fixedBytes;
  int limit;  ///< 0 for none
};

/// The largest block with which a multiprocessor is as full as it can be.
int bestBlock(const Function& function, const BlockChoice& choice) {
  int most = static_cast<int>(std::min(function.maxThreads, kMostBlockThreads));
  if (choice.limit > 0) most = std::min(most, choice.limit);
  int best = std::max(most, 1);
  int bestThreads = 0;
  for (int size = most / 32 * 32; size > 0; size -= 32) {
    const std::size_t bytes = choice.dynamicBytes == nullptr ? choice.fixedBytes : choice.dynamicBytes(size);
    const int threads = blocksPerProcessor(function, static_cast<unsigned>(size), bytes) * size;
    if (threads <= bestThreads) continue;
    bestThreads = threads;
    best = size;
  }
  return best;
}

CUresult potentialBlock(const char* name, int* grid, int* block, CUfunction handle, const BlockChoice& choice) {
  return callInContext(name, [&](Context& context) -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& function = *reinterpret_cast<const Function*>(handle);
    *block = bestBlock(function, choice);
    const std::size_t bytes = choice.dynamicBytes == nullptr ? choice.fixedBytes : choice.dynamicBytes(*block);
    *grid = processorsOf(context.device()) * blocksPerProcessor(function, static_cast<unsigned>(*block), bytes);
    return CUDA_SUCCESS;
  });
}

}  // namespace

int tutti::softgpu::processorsOf(const Device& device) {
  int count = 0;
  device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &count);
  return count;
}

int tutti::softgpu::blocksPerProcessor(const Function& function, unsigned threads, std::size_t dynamicBytes) {
  constexpr std::size_t kThreads = 2048;
  constexpr std::size_t kBlocks = 32;
  constexpr std::size_t kSharedBytes = 228 << 10;
  constexpr std::size_t kReservedBytes = 1 << 10;  // of each block
  if (threads == 0 || threads > function.maxThreads) return 0;
  const std::size_t shared = function.staticSharedBytes + dynamicBytes;
  if (function.ptx == nullptr) return static_cast<int>(kThreads / threads);
  if (shared > kMostSharedBytes) return 0;
  const std::size_t warps = (threads + 31) / 32;
  return static_cast<int>(std::min({kThreads / 32 / warps, kBlocks, kSharedBytes / (shared + kReservedBytes)}));
}

extern "C" {

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return withFunction("cuFuncGetAttribute", handle, [&](const Function& function) -> CUresult {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : attributeOf(value, attribute, function);
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return withFunction("cuFuncSetAttribute", handle, [&](Function& function) -> CUresult {
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    return setDynamicSharedLimit(function, value);
  });
}

CUresult cuFuncGetModule(CUmodule* result, CUfunction handle) {
  return withFunction("cuFuncGetModule", handle, [&](const Function& function) -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUmodule>(function.module);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  return withFunction("cuFuncGetName", handle, [&](const Function& function) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function.name;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  return withFunction("cuFuncGetParamInfo", handle, [&](const Function& function) -> CUresult {
    // Kernels compiled for the host take one struct.
    const std::size_t count = function.ptx != nullptr ? function.ptx->paramCount : (function.paramBytes != 0 ? 1 : 0);
    if (offset == nullptr || index >= count) return CUDA_ERROR_INVALID_VALUE;
    *offset = function.ptx != nullptr ? function.ptx->params[index].offset : 0;
    if (bytes != nullptr) *bytes = function.ptx != nullptr ? function.ptx->params[index].bytes : function.paramBytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int blockSize, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, blockSize, shared, 0);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle, int blockSize,
                                                              size_t shared, unsigned int) {
  return withFunction("cuOccupancyMaxActiveBlocksPerMultiprocessor", handle, [&](const Function& function) -> CUresult {
    if (blocks == nullptr || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocksPerProcessor(function, static_cast<unsigned>(blockSize), shared);
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize dynamicBytes,
                                          size_t fixedBytes, int limit) {
  return potentialBlock("cuOccupancyMaxPotentialBlockSize", grid, block, function, {dynamicBytes, fixedBytes, limit});
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize dynamicBytes, size_t fixedBytes, int limit,
                                                   unsigned int) {
  return potentialBlock("cuOccupancyMaxPotentialBlockSize", grid, block, function, {dynamicBytes, fixedBytes, limit});
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks, int blockSize) {
  return withFunction("cuOccupancyAvailableDynamicSMemPerBlock", handle, [&](const Function& function) -> CUresult {
    if (bytes == nullptr || blocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::size_t most = 0;
    for (std::size_t kib = 1; kib * 1024 + function.staticSharedBytes <= kMostSharedBytes; ++kib) {
      if (blocksPerProcessor(function, static_cast<unsigned>(blockSize), kib << 10) < blocks) break;
      most = kib << 10;
    }
    *bytes = most;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
