#include "gpu/stream.h"

#include <algorithm>
#include <thread>

#include "base/log.h"

namespace tutti::gpu {

void detail::StreamTraits::close(Type held) {
  giveBack(held, &Driver::cuStreamDestroy, "cuStreamDestroy");
}

Result<Stream> Stream::create(const Device& device) {
  ASSIGN(const ContextGuard guard, device.enter());
  CUstream stream = nullptr;
  TRY(device.check(device.driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return Stream({&device, stream});
}

Result<unsigned long long> streamId(const Driver& driver, CUstream stream) {
  if (driver.cuStreamGetId == nullptr) return 0ULL;
  unsigned long long id = 0;
  TRY(checkCu(driver, driver.cuStreamGetId(stream, &id), "cuStreamGetId"));
  return id;
}

Status waitStream(const Device& device, CUstream stream, const Abort* abort, std::chrono::milliseconds bound) {
  ASSIGN(const ContextGuard guard, device.enter());
  return detail::waitDevice(device, "cuStreamQuery", abort, bound,
                            [&] { return device.driver().cuStreamQuery(stream); });
}

Result<bool> detail::pollDevice(const Device& device, const char* call, const Abort* abort,
                                std::chrono::milliseconds bound, const std::function<CUresult()>& query) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  std::chrono::microseconds pause{1};
  for (;;) {
    const CUresult result = query();
    if (result != CUDA_ERROR_NOT_READY) {
      TRY(device.check(result, call));
      return true;
    }
    if (abort != nullptr && abort->raised()) return abort->status();
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds{200});
  }
}

Status detail::waitDevice(const Device& device, const char* call, const Abort* abort, std::chrono::milliseconds bound,
                          const std::function<CUresult()>& query) {
  ASSIGN(const bool done, pollDevice(device, call, abort, bound, query));
  if (done) return {};
  return fail(ncclSystemError,
              "Device {} did not finish its work within {} ms ({} still says not ready); is a kernel on it waiting for "
              "a rank that is gone?",
              device.ordinal(), bound.count(), call);
}

}  // namespace tutti::gpu
