// Streams.
#include <algorithm>

#include "softgpu/device/capture.h"
#include "softgpu/driver/entry.h"
#include "softgpu/withdrawal.h"

using namespace tutti::softgpu;

namespace {

CUresult createStream(const char* name, CUstream* result, unsigned flags, int priority) {
  return callInContext(name, [&](Context& context) -> CUresult {
    if (result == nullptr || (flags & ~1u) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>(context, flags, std::clamp(priority, -5, 0));
    {
      std::lock_guard<std::mutex> guard(machine().lock);
      context.adopt(stream);
    }
    *result = reinterpret_cast<CUstream>(machine().streams.add(std::move(stream)));
    return CUDA_SUCCESS;
  });
}

CUresult word(const char* name, CUstream handle, const WordOperation& operation) {
  return callOnStream(name, handle, [&](Stream& stream) -> CUresult {
    const std::size_t alignment = operation.wide ? 8 : 4;
    const auto address = reinterpret_cast<std::uintptr_t>(operation.address);
    if (address == 0 || address % alignment != 0) return CUDA_ERROR_INVALID_VALUE;
    return stream.submit(operation);
  });
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return createStream("cuStreamCreate", stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return createStream("cuStreamCreateWithPriority", stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return call("cuStreamDestroy", [&]() -> CUresult {
    // Work already queued still runs: the engine holds the stream until then.
    return machine().streams.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return callOnStream("cuStreamQuery", handle, [](Stream& stream) -> CUresult {
    if (const CUresult error = refuseWhileCapturing(stream); error != CUDA_SUCCESS) return error;
    return stream.idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return callOnStream("cuStreamSynchronize", handle, [](Stream& stream) -> CUresult {
    if (const CUresult error = refuseWhileCapturing(stream); error != CUDA_SUCCESS) return error;
    return stream.synchronize();
  });
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return callOnStream("cuStreamGetPriority", handle, [&](Stream& stream) -> CUresult {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream.priority();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return callOnStream("cuStreamGetFlags", handle, [&](Stream& stream) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream.flags();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return callOnStream("cuStreamGetId", handle, [&](Stream& stream) -> CUresult {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = stream.id();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return callOnStream("cuStreamGetCtx", handle, [&](Stream& stream) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = stream.context().handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return callOnStream("cuStreamGetDevice", handle, [&](Stream& stream) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = stream.context().device().index();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent eventHandle, unsigned int) {
  return callOnStream("cuStreamWaitEvent", handle, [&](Stream& stream) -> CUresult {
    auto event = machine().events.find(eventHandle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return stream.submit(WaitOperation{std::move(event)});
  });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return callOnStream("cuLaunchHostFunc", handle, [&](Stream& stream) -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return stream.submit(HostOperation{function, data});
  });
}

__attribute__((visibility("default"))) int softgpuWithdrawHostFunction(CUhostFn function, unsigned milliseconds) {
  if (!machineExists()) return CUDA_SUCCESS;  // nothing has it, as in children made by fork()
  return call("softgpuWithdrawHostFunction", [&]() -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (machine().hostCalls.withdraw(function, std::chrono::milliseconds(milliseconds))) {
      case HostCalls::Withdrawal::Done:
        return CUDA_SUCCESS;
      case HostCalls::Withdrawal::LeftOut:
        return CUDA_ERROR_NOT_READY;
      case HostCalls::Withdrawal::Running:
        return CUDA_ERROR_TIMEOUT;
      case HostCalls::Withdrawal::Inside:
        return CUDA_ERROR_NOT_PERMITTED;
    }
    return CUDA_ERROR_UNKNOWN;
  });
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned int) {
  struct Call {
    CUstream stream;
    CUstreamCallback callback;
    void* data;
  };
  return callOnStream("cuStreamAddCallback", handle, [&](Stream& stream) -> CUresult {
    if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto run = [](void* argument) {
      const std::unique_ptr<Call> held(static_cast<Call*>(argument));
      held->callback(held->stream, CUDA_SUCCESS, held->data);
    };
    return stream.submit(HostOperation{run, new Call{handle, callback, data}});
  });
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return word("cuStreamWaitValue32", stream, {bytesOf(address), value, false, false, flags});
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return word("cuStreamWaitValue64", stream, {bytesOf(address), value, true, false, flags});
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return word("cuStreamWriteValue32", stream, {bytesOf(address), value, false, true, flags});
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return word("cuStreamWriteValue64", stream, {bytesOf(address), value, true, true, flags});
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* list, unsigned int) {
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& op = list[i];
    const auto kind = op.operation;
    if (kind == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES || kind == CU_STREAM_MEM_OP_BARRIER) continue;
    const bool wide = kind == CU_STREAM_MEM_OP_WAIT_VALUE_64 || kind == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    const bool write = kind == CU_STREAM_MEM_OP_WRITE_VALUE_32 || kind == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    const std::uint64_t value = wide ? op.waitValue.value64 : op.waitValue.value;
    const CUresult result =
        word("cuStreamBatchMemOp", stream, {bytesOf(op.waitValue.address), value, wide, write, op.waitValue.flags});
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
