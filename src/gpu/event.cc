#include "gpu/event.h"

#include "base/log.h"
#include "gpu/stream.h"

namespace tutti::gpu {

void detail::EventTraits::close(Type held) {
  giveBack(held, &Driver::cuEventDestroy, "cuEventDestroy");
}

Result<Event> Event::create(const Device& device) {
  ASSIGN(const ContextGuard guard, device.enter());
  CUevent event = nullptr;
  TRY(device.check(device.driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  return Event({&device, event});
}

Result<Event> Event::createTimed(const Device& device) {
  ASSIGN(const ContextGuard guard, device.enter());
  if (device.driver().cuEventElapsedTime == nullptr) {
    return fail(ncclUnhandledCudaError, "The CUDA driver has no cuEventElapsedTime; a newer one has");
  }
  CUevent event = nullptr;
  TRY(device.check(device.driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate"));
  return Event({&device, event});
}

Result<double> Event::secondsSince(const Event& earlier) const {
  constexpr double kMilli = 1e-3;
  float milliseconds = 0;
  TRY(device().check(device().driver().cuEventElapsedTime(&milliseconds, earlier.get(), get()), "cuEventElapsedTime"));
  return double{milliseconds} * kMilli;
}

Status Event::record(CUstream stream) {
  return device().check(device().driver().cuEventRecord(get(), stream), "cuEventRecord");
}

Status Event::waitOn(CUstream stream) const {
  return device().check(device().driver().cuStreamWaitEvent(stream, get(), CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
}

Result<bool> Event::done() const {
  ASSIGN(const ContextGuard guard, device().enter());
  const CUresult result = device().driver().cuEventQuery(get());
  if (result == CUDA_ERROR_NOT_READY) return false;
  TRY(device().check(result, "cuEventQuery"));
  return true;
}

Status Event::wait(const Abort* abort, std::chrono::milliseconds bound) const {
  ASSIGN(const ContextGuard guard, device().enter());
  return detail::waitDevice(device(), "cuEventQuery", abort, bound,
                            [this] { return device().driver().cuEventQuery(get()); });
}

Result<bool> Event::doneWithin(std::chrono::milliseconds bound) const {
  ASSIGN(const ContextGuard guard, device().enter());
  return detail::pollDevice(device(), "cuEventQuery", nullptr, bound,
                            [this] { return device().driver().cuEventQuery(get()); });
}

}  // namespace tutti::gpu
