// How long things may take.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace tutti::ras {

/// All of them grow with NCCL_RAS_TIMEOUT_FACTOR.
struct Timers {
  milliseconds keepAlive{1000};  ///< between two of them
  milliseconds warn{5000};       ///< without a sign, a process is unresponsive
  milliseconds retry{1000};      ///< before a connection that failed is tried again
  milliseconds stuck{20000};     ///< without a sign, a connection is given up and made anew
  milliseconds dead{60000};      ///< without a sign, a process is considered dead
  milliseconds idle{60000};      ///< who connected may say nothing for so long
  milliseconds leg{5000};        ///< for the answers to a query, where the client asks for no other time

  static Timers scaled(double factor) {
    const auto times = [factor](milliseconds span) {
      return std::max(milliseconds(1),
                      milliseconds(static_cast<milliseconds::rep>(static_cast<double>(span.count()) * factor)));
    };
    const Timers one;
    return {times(one.keepAlive), times(one.warn), times(one.retry), times(one.stuck),
            times(one.dead),      times(one.idle), times(one.leg)};
  }
};

}  // namespace tutti::ras
