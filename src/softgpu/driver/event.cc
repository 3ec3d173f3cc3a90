// Events.
#include <time.h>

#include "softgpu/device/capture.h"
#include "softgpu/driver/entry.h"

using namespace tutti::softgpu;

namespace {

template <class Body>
CUresult withEvent(const char* name, CUevent handle, Body&& body) {
  return call(name, [&]() -> CUresult {
    const std::shared_ptr<Event> event = machine().events.find(handle);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*event);
  });
}

std::shared_ptr<Marker> lastOf(const Event& event) {
  std::lock_guard<std::mutex> guard(machine().lock);
  return event.last;
}

bool sharedDone(const Event& event) {
  return event.shared()->completed.load() >= event.shared()->recorded.load();
}

}  // namespace

extern "C" {

CUresult cuEventCreate(CUevent* result, unsigned int flags) {
  return callInContext("cuEventCreate", [&](Context& context) -> CUresult {
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (result == nullptr || (flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>(context, flags);
    if (shared) {
      event->sharedPage = Backing::create(sizeof(SharedEvent), context.device().facts().physical);
      if (event->sharedPage == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *result = reinterpret_cast<CUevent>(machine().events.add(std::move(event)));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return call("cuEventDestroy", [&]() -> CUresult {
    return machine().events.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream streamHandle, unsigned int) {
  return callOnStream("cuEventRecord", streamHandle, [&](Stream& stream) -> CUresult {
    auto event = machine().events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (&event->context().device() != &stream.context().device()) return CUDA_ERROR_INVALID_HANDLE;
    return stream.submit(RecordOperation{std::move(event)});
  });
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
  return cuEventRecordWithFlags(handle, stream, 0);
}

CUresult cuEventQuery(CUevent handle) {
  return withEvent("cuEventQuery", handle, [](Event& event) -> CUresult {
    if (const CUresult error = event.context().error(); error != CUDA_SUCCESS) return error;
    if (event.shared() != nullptr) return sharedDone(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    const auto marker = lastOf(event);
    return marker == nullptr || marker->done.load() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return withEvent("cuEventSynchronize", handle, [](Event& event) -> CUresult {
    if (event.shared() != nullptr) {
      const std::uint64_t wanted = event.shared()->recorded.load();
      const timespec pause = {0, 20000};  // the other process cannot wake us
      while (event.shared()->completed.load() < wanted) ::nanosleep(&pause, nullptr);
    } else if (const auto marker = lastOf(event)) {
      marker->wait();
    }
    return event.context().error();
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent first, CUevent second) {
  return withEvent("cuEventElapsedTime", first, [&](Event& begin) -> CUresult {
    const std::shared_ptr<Event> finish = machine().events.find(second);
    if (finish == nullptr || !begin.timed() || !finish->timed()) return CUDA_ERROR_INVALID_HANDLE;
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto from = lastOf(begin);
    const auto to = lastOf(*finish);
    if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!from->done.load() || !to->done.load()) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(static_cast<double>(to->nanoseconds - from->nanoseconds) * 1e-6);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
