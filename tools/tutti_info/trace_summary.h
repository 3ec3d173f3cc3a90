// Where the time of a job went, in words.
#pragma once

#include <cstdint>
#include <string>

#include "trace_job.h"

namespace tutti::tool {

/// Lateness below that, or below twice the error of the clocks, is not told: any two threads differ by so much.
inline constexpr std::uint64_t kWorthTelling = 50'000;

/// The whole summary, with a line break at its end.
std::string summaryOf(const Job& job);

/// "1.25 ms": three digits and a unit.
std::string timeText(double nanoseconds);
/// "64 KB", as benchmarks write it.
std::string bytesText(std::uint64_t bytes);

}  // namespace tutti::tool
