#include "gpu/stream.h"

#include <algorithm>
#include <thread>

#include "base/log.h"

namespace tutti {

void detail::StreamTraits::close(Type held) {
  const auto guard = held.device->enter();
  if (guard.ok()) held.device->check(held.device->driver().cuStreamDestroy(held.stream), "cuStreamDestroy").ignore();
}

Result<Stream> Stream::create(const Device& device) {
  ASSIGN(const ContextGuard guard, device.enter());
  CUstream stream = nullptr;
  TRY(device.check(device.driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return Stream({&device, stream});
}

Result<CaptureState> captureState(const Driver& driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CaptureState state;
  if (driver.cuStreamGetCaptureInfo != nullptr) {
    cuuint64_t id = 0;
#if CUDA_VERSION >= 13000
    const CUresult result =
        driver.cuStreamGetCaptureInfo(stream, &status, &id, &state.graph, nullptr, nullptr, nullptr);
#else
    const CUresult result = driver.cuStreamGetCaptureInfo(stream, &status, &id, &state.graph, nullptr, nullptr);
#endif
    // The legacy stream cannot be asked while another stream of its context captures; it never captures itself.
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return CaptureState{};
    TRY(checkCu(driver, result, "cuStreamGetCaptureInfo"));
    state.id = id;
  } else {
    TRY(checkCu(driver, driver.cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing"));
    state.id = 1;
  }
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    return fail(ncclInvalidUsage,
                "The stream's capture was invalidated by an earlier call; end it (cudaStreamEndCapture) and look for a "
                "call that is not allowed during capture");
  }
  state.capturing = status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (!state.capturing) return CaptureState{};
  return state;
}

Result<unsigned long long> streamId(const Driver& driver, CUstream stream) {
  if (driver.cuStreamGetId == nullptr) return 0ULL;
  unsigned long long id = 0;
  TRY(checkCu(driver, driver.cuStreamGetId(stream, &id), "cuStreamGetId"));
  return id;
}

Status waitStream(const Device& device, CUstream stream, const Abort* abort, std::chrono::milliseconds bound) {
  ASSIGN(const ContextGuard guard, device.enter());
  return detail::pollDevice(device, "cuStreamQuery", abort, bound,
                            [&] { return device.driver().cuStreamQuery(stream); });
}

Status detail::pollDevice(const Device& device, const char* call, const Abort* abort, std::chrono::milliseconds bound,
                          const std::function<CUresult()>& query) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  std::chrono::microseconds pause{1};
  for (;;) {
    const CUresult result = query();
    if (result != CUDA_ERROR_NOT_READY) return device.check(result, call);
    if (abort != nullptr && abort->raised()) return abort->status();
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail(ncclSystemError,
                  "Device {} did not finish its work within {} ms ({} still says not ready); is a kernel on it waiting "
                  "for a rank that is gone?",
                  device.ordinal(), bound.count(), call);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds{200});
  }
}

}  // namespace tutti
