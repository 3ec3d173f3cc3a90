#include "ras/report/lines.h"

#include <fmt/format.h>

#include <bit>

#include "base/status.h"

namespace tutti::ras {

std::string counted(std::size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string devicesText(std::uint64_t mask) {
  std::string text;
  for (int bit = 0; bit < 64; ++bit) {
    if ((mask >> bit & 1) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", bit);
  }
  return text;
}

std::string processText(const ProcessFacts& process) {
  std::string text = fmt::format("Process {} on node {}", process.pid, process.address.hostText());
  if (process.cudaDevices == 0) return text;
  text += fmt::format(" managing GPU{} {}", std::popcount(process.cudaDevices) > 1 ? "s" : "",
                      devicesText(process.cudaDevices));
  if (process.nvmlDevices != 0 && process.nvmlDevices != process.cudaDevices) {
    text += fmt::format(" (NVML {})", devicesText(process.nvmlDevices));
  }
  return text;
}

std::string placeText(std::int32_t cudaDevice, std::int32_t nvmlDevice, const SurveyedProcess* process) {
  if (process == nullptr) return "[process information not found]";
  std::string text = fmt::format("GPU {}", cudaDevice);
  if (nvmlDevice >= 0 && nvmlDevice != cudaDevice) text += fmt::format(" (NVML {})", nvmlDevice);
  return text + fmt::format(" managed by process {} on node {}", process->facts.pid, process->facts.address.hostText());
}

std::string_view errorText(std::int32_t code) {
  switch (code) {
    case ncclSuccess:
      return "Success";
    case ncclUnhandledCudaError:
      return "Unhandled CUDA error";
    case ncclSystemError:
      return "System error";
    case ncclInternalError:
      return "Internal error";
    case ncclInvalidArgument:
      return "Invalid argument";
    case ncclInvalidUsage:
      return "Invalid usage";
    case ncclRemoteError:
      return "Remote process error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclTimeout:
      return "Timeout";
    default:
      return "Unknown error";
  }
}

}  // namespace tutti::ras
