// Launches.
#include <algorithm>
#include <cstring>

#include "softgpu/driver/code/occupancy.h"
#include "softgpu/driver/graph_support.h"
#include "softgpu/ptx_library.h"
#include "softgpu/say.h"

using namespace tutti::softgpu;

namespace {

struct Limits {
  std::uint64_t grid[3];
  std::uint64_t block[3];
};
/// Those of a GPU. Kernels compiled for the host have one dimension.
constexpr Limits kLimits = {{0x7fffffff, 65535, 65535}, {1024, 1024, 64}};
constexpr Limits kFlatLimits = {{0xffffffff, 1, 1}, {1024, 1, 1}};

std::uint64_t product(const unsigned (&sizes)[3]) {
  return std::uint64_t{sizes[0]} * sizes[1] * sizes[2];
}

CUresult refuse(const Function& function, const LaunchShape& shape, const char* why) {
  say("kernel %s cannot run with blocks of %u x %u x %u threads, %u x %u x %u of them, and %u bytes of dynamic shared "
      "memory: %s",
      function.name, shape.block[0], shape.block[1], shape.block[2], shape.grid[0], shape.grid[1], shape.grid[2],
      shape.sharedBytes, why);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult checkShape(const Function& function, const LaunchShape& shape) {
  const Limits& limits = function.ptx != nullptr ? kLimits : kFlatLimits;
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    if (shape.grid[i] > limits.grid[i] || shape.block[i] > limits.block[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  if (product(shape.block) > std::min(function.maxThreads, kMostBlockThreads)) return CUDA_ERROR_INVALID_VALUE;
  if (function.ptx == nullptr) return CUDA_SUCCESS;
  // On hardware there may be more; here blocks are counted in 32 bits.
  if (std::uint64_t{shape.grid[0]} * shape.grid[1] > 0xffffffff || product(shape.grid) > 0xffffffff) {
    return refuse(function, shape, "the software GPU runs fewer than 2^32 blocks of a kernel");
  }
  if (shape.sharedBytes > static_cast<unsigned>(function.dynamicSharedLimit.load())) {
    return refuse(function, shape,
                  "more shared memory than CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES (48 KiB with what is "
                  "static, where it was not set)");
  }
  return CUDA_SUCCESS;
}

/// A thread that runs on a fiber has its local variables on the fiber's stack, of 64 KiB.
CUresult checkLocalMemory(const Function& function, const tutti::simt::HostKernel& kernel) {
  constexpr std::uint32_t kMost = 40 << 10;
  if (function.ptx == nullptr || kernel.wholeBlock != nullptr || function.ptx->localBytes <= kMost) return CUDA_SUCCESS;
  say("kernel %s cannot run: its threads meet others and have %u bytes of local variables each; on the software GPU "
      "such "
      "threads have at most %u",
      function.name, function.ptx->localBytes, kMost);
  return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/// The block of parameters that `extra` of cuLaunchKernel names; null if it names none.
CUresult packedParams(const Function& function, void** extra, const void** source) {
  *source = nullptr;
  std::size_t bytes = function.paramBytes;
  for (void** word = extra; word != nullptr && *word != CU_LAUNCH_PARAM_END; word += 2) {
    if (*word == CU_LAUNCH_PARAM_BUFFER_POINTER) *source = word[1];
    if (*word == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const std::size_t*>(word[1]);
  }
  return *source != nullptr && bytes < function.paramBytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// The params of the caller, copied.
CUresult packParams(const Function& function, const LaunchShape& shape, KernelOperation* operation) {
  const void* packed = nullptr;
  if (shape.params == nullptr) {
    if (const CUresult error = packedParams(function, shape.extra, &packed); error != CUDA_SUCCESS) return error;
  } else if (function.ptx == nullptr) {
    packed = shape.params[0];
  }
  if (packed != nullptr || function.paramBytes == 0) {
    operation->params = copyParams(packed, function.paramBytes);
    return CUDA_SUCCESS;
  }
  if (shape.params == nullptr || function.ptx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto block = std::make_shared<std::max_align_t[]>(function.paramBytes / sizeof(std::max_align_t) + 1);
  for (std::uint32_t i = 0; i < function.ptx->paramCount; ++i) {
    const PtxParam& param = function.ptx->params[i];
    if (shape.params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(reinterpret_cast<char*>(block.get()) + param.offset, shape.params[i], param.bytes);
  }
  operation->params = std::move(block);
  return CUDA_SUCCESS;
}

CUresult placeCode(const Function& function, Context* context, const LaunchShape& shape, KernelOperation* operation) {
  std::shared_ptr<const PlacedCode> placed;
  if (const CUresult error = function.module->place(context, &placed); error != CUDA_SUCCESS) return error;
  auto code = std::make_shared<CodeLaunch>();
  code->shape = {{shape.block[0], shape.block[1], shape.block[2]},
                 {shape.grid[0], shape.grid[1], shape.grid[2]},
                 shape.sharedBytes,
                 shape.cooperative ? code->workspace : nullptr};
  code->variables = placed->variables();
  code->owner = std::move(placed);
  operation->code = std::move(code);
  return CUDA_SUCCESS;
}

CUresult launch(const char* name, CUfunction handle, CUstream stream, const LaunchShape& shape) {
  return callOnStream(name, stream, [&](Stream& queue) -> CUresult {
    KernelOperation operation;
    const CUresult error = kernelOperation(handle, &queue.context(), shape, &operation);
    return error == CUDA_SUCCESS ? queue.submit(operation) : error;
  });
}

/// Blocks of a cooperative launch wait for one another, so all of them must be there at once.
CUresult checkCooperative(CUfunction handle, const LaunchShape& shape) {
  const Context* context = currentContext();
  if (handle == nullptr || context == nullptr) return CUDA_SUCCESS;  // the launch says so
  const auto& function = *reinterpret_cast<const Function*>(handle);
  if (function.ptx == nullptr || product(shape.block) > kMostBlockThreads) return CUDA_SUCCESS;
  const int each = blocksPerProcessor(function, static_cast<unsigned>(product(shape.block)), shape.sharedBytes);
  const auto most =
      static_cast<std::uint64_t>(std::min(each * processorsOf(context->device()), machine().settings.blockSlots));
  return product(shape.grid) > most ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

/// The event that a launch records when all its blocks have begun. As the driver has it, that event takes no time.
CUresult findBegun(CUevent handle, const Context& context, std::shared_ptr<Event>* event) {
  if (handle == nullptr) return CUDA_SUCCESS;
  *event = machine().events.find(handle);
  if (*event == nullptr || &(*event)->context().device() != &context.device()) return CUDA_ERROR_INVALID_HANDLE;
  return (*event)->timed() || (*event)->shared() != nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUevent begunEvent(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) return attribute.value.launchCompletionEvent.event;
  }
  return nullptr;
}

bool wantsCooperation(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute.value.cooperative != 0) return true;
  }
  return false;
}

/// Blocks of a cluster share memory, which those of this device do not.
bool wantsClusters(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    const auto& size = attribute.value.clusterDim;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && size.x * size.y * size.z > 1) return true;
  }
  return false;
}

CUresult launchCooperative(const char* name, CUfunction handle, CUstream stream, const LaunchShape& shape) {
  if (!machineExists()) return CUDA_ERROR_NOT_INITIALIZED;
  if (const CUresult error = checkCooperative(handle, shape); error != CUDA_SUCCESS) return error;
  LaunchShape cooperative = shape;
  cooperative.cooperative = true;
  return launch(name, handle, stream, cooperative);
}

}  // namespace

CUresult tutti::softgpu::kernelOperation(CUfunction handle, Context* context, const LaunchShape& shape,
                                         KernelOperation* operation) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto& function = *reinterpret_cast<Function*>(handle);
  if (const CUresult error = checkShape(function, shape); error != CUDA_SUCCESS) return error;
  operation->kernel = function.module->kernelOf(function);
  if (operation->kernel == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult error = checkLocalMemory(function, *operation->kernel); error != CUDA_SUCCESS) return error;
  operation->blocks = static_cast<std::uint32_t>(product(shape.grid));
  operation->threads = static_cast<std::uint32_t>(product(shape.block));
  operation->dynamicSharedBytes = shape.sharedBytes;
  if (const CUresult error = findBegun(shape.begun, *context, &operation->begun); error != CUDA_SUCCESS) return error;
  if (function.ptx != nullptr) {
    if (const CUresult error = placeCode(function, context, shape, operation); error != CUDA_SUCCESS) return error;
  }
  return packParams(function, shape, operation);
}

extern "C" {

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** params,
                        void** extra) {
  return launch("cuLaunchKernel", f, stream, {{gx, gy, gz}, {bx, by, bz}, shared, params, extra});
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** params, void** extra) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape = {{c->gridDimX, c->gridDimY, c->gridDimZ},
                       {c->blockDimX, c->blockDimY, c->blockDimZ},
                       c->sharedMemBytes,
                       params,
                       extra};
  shape.begun = begunEvent(*c);
  if (wantsClusters(*c)) return unsupported("a launch of clusters of blocks");
  return (wantsCooperation(*c) ? launchCooperative : launch)("cuLaunchKernelEx", f, c->hStream, shape);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                                   void** params) {
  return launchCooperative("cuLaunchCooperativeKernel", f, stream,
                           {{gx, gy, gz}, {bx, by, bz}, shared, params, nullptr});
}

}  // extern "C"
