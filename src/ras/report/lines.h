// How reports speak of processes and ranks, and how they count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ras/report/survey.h"

namespace tutti::ras {

/// "1 rank", "3 ranks".
std::string counted(std::size_t n, std::string_view one, std::string_view many);
inline std::string ranksText(std::size_t n) {
  return counted(n, "rank", "ranks");
}

/// "Process 4711 on node 10.0.0.1 managing GPUs 0,1 (NVML 2,3)"; the second numbers only where they differ.
std::string processText(const ProcessFacts& process);

/// "GPU 0 (NVML 2) managed by process 4711 on node 10.0.0.1"; `process` may be null.
std::string placeText(std::int32_t cudaDevice, std::int32_t nvmlDevice, const SurveyedProcess* process);

/// "Internal error": an ncclResult_t in words.
std::string_view errorText(std::int32_t code);

/// "0,3,5": the bits that are set.
std::string devicesText(std::uint64_t mask);

}  // namespace tutti::ras
