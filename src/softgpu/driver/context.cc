// Contexts and the calling thread's stack of them.
#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

CUresult freeMemoryOf(Context& context) {
  for (const auto& allocation : machine().memory.all()) {
    if (allocation->context != &context || allocation->kind != MemoryKind::Device) continue;
    if (machine().memory.take(allocation->base) != nullptr) context.device().release(*allocation);
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice ordinal) {
  return withDevice("cuDevicePrimaryCtxRetain", ordinal, [&](Device& device) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context& context = device.primary();
    std::lock_guard<std::mutex> guard(machine().lock);
    ++context.retains;
    *result = context.handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  return withDevice("cuDevicePrimaryCtxRelease", ordinal, [&](Device& device) {
    Context& context = device.primary();
    std::lock_guard<std::mutex> guard(machine().lock);
    if (context.retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --context.retains;  // memory stays until the process ends or resets the device: contexts are cheap here
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  return withDevice("cuDevicePrimaryCtxReset", ordinal, [&](Device& device) {
    Context& context = device.primary();
    static_cast<void>(context.synchronize());
    std::vector<std::shared_ptr<Stream>> streams;
    {
      std::lock_guard<std::mutex> guard(machine().lock);
      streams = context.liveStreams();
    }
    for (const auto& stream : streams) machine().streams.take(stream.get());
    context.clearError();
    return freeMemoryOf(context);
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  return withDevice("cuDevicePrimaryCtxGetState", ordinal, [&](Device& device) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context& context = device.primary();
    std::lock_guard<std::mutex> guard(machine().lock);
    *flags = context.flags;
    *active = context.retains > 0 ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  return withDevice("cuDevicePrimaryCtxSetFlags", ordinal, [&](Device& device) {
    Context& context = device.primary();
    std::lock_guard<std::mutex> guard(machine().lock);
    context.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate_v4(CUcontext* result, CUctxCreateParams*, unsigned int flags, CUdevice ordinal) {
  return withDevice("cuCtxCreate", ordinal, [&](Device& device) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto context = std::make_unique<Context>(device, false);
    context->makeLegacyStream();
    context->flags = flags;
    context->retains = 1;
    *result = context->handle();
    pushContext(context.get());
    std::lock_guard<std::mutex> guard(machine().lock);
    machine().contexts.push_back(std::move(context));
    return CUDA_SUCCESS;
  });
}

__attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext* result, unsigned int flags,
                                                               CUdevice ordinal) {
  return cuCtxCreate_v4(result, nullptr, flags, ordinal);
}

__attribute__((visibility("default"))) CUresult cuCtxCreate_v3(CUcontext* result, CUexecAffinityParam*, int,
                                                               unsigned int flags, CUdevice ordinal) {
  return cuCtxCreate_v4(result, nullptr, flags, ordinal);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  return call("cuCtxDestroy", [&]() -> CUresult {
    Context* context = contextOf(handle);
    if (context == nullptr || context->primary()) return CUDA_ERROR_INVALID_CONTEXT;
    static_cast<void>(context->synchronize());
    if (currentContext() == context) popContext();
    {
      std::lock_guard<std::mutex> guard(machine().lock);
      context->retains = 0;
    }
    return freeMemoryOf(*context);
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return call("cuCtxPushCurrent", [&]() -> CUresult {
    Context* context = contextOf(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    pushContext(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* result) {
  return call("cuCtxPopCurrent", [&]() -> CUresult {
    Context* top = popContext();
    if (top == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (result != nullptr) *result = top->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  return call("cuCtxSetCurrent", [&]() -> CUresult {
    Context* context = handle == nullptr ? nullptr : contextOf(handle);
    if (handle != nullptr && context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    setCurrentContext(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* result) {
  return call("cuCtxGetCurrent", [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = currentContext();
    *result = context == nullptr ? nullptr : context->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* result) {
  return call("cuCtxGetDevice", [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = currentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *result = context->device().index();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* result, CUcontext handle) {
  return call("cuCtxGetDevice", [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = handle == nullptr ? currentContext() : contextOf(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *result = context->device().index();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return call("cuCtxGetId", [&]() -> CUresult {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = handle == nullptr ? currentContext() : contextOf(handle);
    if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = context->id();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return callInContext("cuCtxGetFlags", [&](Context& context) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  return call("cuCtxGetApiVersion", [&]() -> CUresult {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize(void) {
  return callInContext("cuCtxSynchronize", [](Context& context) { return context.synchronize(); });
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  return call("cuCtxSynchronize", [&]() -> CUresult {
    Context* context = handle == nullptr ? currentContext() : contextOf(handle);
    return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : context->synchronize();
  });
}

CUresult cuCtxSetLimit(CUlimit, size_t) {
  return callInContext("cuCtxSetLimit", [](Context&) { return CUDA_SUCCESS; });
}

CUresult cuCtxGetLimit(size_t* value, CUlimit) {
  return callInContext("cuCtxGetLimit", [&](Context&) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *value = 1024;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return callInContext("cuCtxGetStreamPriorityRange", [&](Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return callInContext("cuCtxEnablePeerAccess", [&](Context& context) -> CUresult {
    Context* other = contextOf(peer);
    if (other == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (&other->device() == &context.device()) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    std::lock_guard<std::mutex> guard(machine().lock);
    if (!context.peers.insert(other).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return callInContext("cuCtxDisablePeerAccess", [&](Context& context) -> CUresult {
    Context* other = contextOf(peer);
    if (other == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    std::lock_guard<std::mutex> guard(machine().lock);
    return context.peers.erase(other) == 0 ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_SUCCESS;
  });
}

}  // extern "C"
