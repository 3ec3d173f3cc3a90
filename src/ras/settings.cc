#include "ras/settings.h"

#include <charconv>
#include <cmath>

#include "base/log.h"

namespace tutti::ras {

double timeoutFactorOf(const std::string& text) {
  constexpr double kMost = 1e6;
  double factor = 1;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, factor);
  if (error == std::errc() && end == last && std::isfinite(factor) && factor > 0 && factor <= kMost) return factor;
  info(kEnv, "Invalid value {} for NCCL_RAS_TIMEOUT_FACTOR, using default 1: a number above 0 is asked for", text);
  return 1;
}

}  // namespace tutti::ras
