#include "gpu/driver.h"

#include <fmt/format.h>

#include <mutex>

#include "base/dl.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "gpu/context.h"

#define TUTTI_TEXT2(x) #x
#define TUTTI_TEXT(x) TUTTI_TEXT2(x)

namespace tutti::gpu {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr const char* kRemedy =
    "Install the NVIDIA driver (in a container: start it with its GPUs, e.g. --gpus all), or run the program under "
    "softgpu-run to use the software GPU";

/// What the one attempt of this process gave.
struct Outcome {
  Driver driver;
  std::string failure;  ///< empty: it worked
};

/// Looks every entry point up; returns the first required one that is missing, "" if none is.
std::string fillTable(const DlLibrary& library, Driver& driver) {
  std::string missing;
  // The inner macro expands the name to the versioned one of cuda.h before it becomes text.
#define TUTTI_LOOK_UP(name) driver.name = library.function<decltype(driver.name)>(TUTTI_TEXT(name));
#define TUTTI_LOOK_UP_REQUIRED(name) \
  TUTTI_LOOK_UP(name)                \
  if (driver.name == nullptr && missing.empty()) missing = TUTTI_TEXT(name);
  TUTTI_DRIVER_CALLS(TUTTI_LOOK_UP_REQUIRED)
  TUTTI_DRIVER_OPTIONAL_CALLS(TUTTI_LOOK_UP)
#undef TUTTI_LOOK_UP
#undef TUTTI_LOOK_UP_REQUIRED
  return missing;
}

int currentDeviceForLog();

void open(Outcome& outcome) {
  std::string why;
  DlLibrary library = DlLibrary::open(kLibrary, &why);
  if (!library.valid()) {
    outcome.failure = fmt::format("The CUDA driver was not found: {}. {}", why, kRemedy);
    return;
  }
  Driver& driver = outcome.driver;
  const std::string missing = fillTable(library, driver);
  const std::string path = driver.cuInit == nullptr ? kLibrary : libraryPathOf(reinterpret_cast<void*>(driver.cuInit));
  if (!missing.empty()) {
    outcome.failure = fmt::format("The CUDA driver {} lacks {}: it is older than CUDA {}. Update the NVIDIA driver",
                                  path, missing, CUDA_VERSION / 1000);
    return;
  }
  driver.softgpuRegisterKernels = library.function<decltype(driver.softgpuRegisterKernels)>("softgpuRegisterKernels");
  driver.softgpuMemoryWindow = library.function<decltype(driver.softgpuMemoryWindow)>("softgpuMemoryWindow");
  driver.softgpuTopology = library.function<decltype(driver.softgpuTopology)>("softgpuTopology");
  driver.softgpuAddIdleHook = library.function<decltype(driver.softgpuAddIdleHook)>("softgpuAddIdleHook");
  driver.softgpuRemoveIdleHook = library.function<decltype(driver.softgpuRemoveIdleHook)>("softgpuRemoveIdleHook");
  driver.softGpu = driver.softgpuRegisterKernels != nullptr;
  library.leak();
  const CUresult started = driver.cuInit(0);
  if (started != CUDA_SUCCESS) {
    outcome.failure = fmt::format("Cuda failure {} in cuInit of {}: {}. {}", static_cast<int>(started), path,
                                  describeCu(driver, started), kRemedy);
    return;
  }
  if (driver.cuDriverGetVersion(&driver.version) != CUDA_SUCCESS) driver.version = 0;
  info(kInit, "CUDA driver {} version {}{}", path, driver.version, driver.softGpu ? " (software GPU)" : "");
  setLogDeviceHook(currentDeviceForLog);  // last: from now on every line asks the driver, which must be open
}

Outcome& outcomeOfProcess() {
  static NeverDestroyed<Outcome> outcome;
  static std::once_flag once;
  std::call_once(once, [] { open(outcome.get()); });
  return outcome.get();
}

/// Runs inside log lines, so it must not log: no check, 0 on any error.
int currentDeviceForLog() {
  const Driver& driver = outcomeOfProcess().driver;
  CUdevice device = 0;
  if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  return device;
}

const char* remedyFor(CUresult result) {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ". The device has no memory left: free some or lower NCCL_BUFFSIZE";
    case CUDA_ERROR_NO_DEVICE:
      return ". No CUDA device is visible: look at CUDA_VISIBLE_DEVICES and nvidia-smi";
    case CUDA_ERROR_NOT_INITIALIZED:
      return ". In a child made by fork() nothing of its parent's CUDA works, communicators included: start it with "
             "exec";
    case CUDA_ERROR_INVALID_DEVICE:
      return ". Look at CUDA_VISIBLE_DEVICES and the device number";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return ". This build has no kernel for the GPU's architecture: configure with -Dgpu_archs= for it";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return ". The driver is older than the compiler of the kernels: update it";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return ". A kernel touched memory it may not: check buffer sizes and that all ranks pass matching counts";
    default:
      return "";
  }
}

}  // namespace

Result<const Driver*> loadDriver() {
  const Outcome& outcome = outcomeOfProcess();
  if (!outcome.failure.empty()) return fail(ncclUnhandledCudaError, "{}", outcome.failure);
  return &outcome.driver;
}

std::string describeCu(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName == nullptr || driver.cuGetErrorName(result, &name) != CUDA_SUCCESS) name = nullptr;
  if (driver.cuGetErrorString == nullptr || driver.cuGetErrorString(result, &text) != CUDA_SUCCESS) text = nullptr;
  return fmt::format("{} '{}'", name == nullptr ? "unknown error" : name, text == nullptr ? "no description" : text);
}

Status checkCu(const Driver& driver, CUresult result, const char* call, int device) {
  if (result == CUDA_SUCCESS) return {};
  return checkCu(driver, result, CuCall{call, device});
}

namespace {

Status failedCu(const Driver& driver, CUresult result, const CuCall& call) {
  const char* text = nullptr;
  if (driver.cuGetErrorString == nullptr || driver.cuGetErrorString(result, &text) != CUDA_SUCCESS) text = nullptr;
  const char* name = nullptr;
  if (driver.cuGetErrorName == nullptr || driver.cuGetErrorName(result, &name) != CUDA_SUCCESS) name = nullptr;
  const std::string device = call.device < 0 ? "" : fmt::format(" on device {}", call.device);
  const std::string bytes = call.bytes == 0 ? "" : fmt::format(" of {} bytes", call.bytes);
  const std::string about = call.about.empty() ? "" : fmt::format(" for {}", call.about);
  return fail(ncclUnhandledCudaError, "Cuda failure {} '{}' ({}) in {}{}{}{}{}", static_cast<int>(result),
              text == nullptr ? "no description" : text, name == nullptr ? "unknown error" : name, call.call, bytes,
              about, device, remedyFor(result));
}

}  // namespace

Status checkCu(const Driver& driver, CUresult result, const CuCall& call) {
  if (result == CUDA_SUCCESS) return {};
  if (result != CUDA_ERROR_DEINITIALIZED) return failedCu(driver, result, call);
  // The process ends while a thread of ours still works: nobody's fault, and nothing that anybody could do about.
  Status ended;
  std::string said;
  {
    const ErrorsAsInfo quiet;
    ended = failedCu(driver, result, call);
    said = lastErrorText();
  }
  recallLastError(said);
  return ended;
}

}  // namespace tutti::gpu
