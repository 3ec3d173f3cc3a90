// What the environment says about threads, thresholds and algorithms, as plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "comm/tuning/thread_thresholds.h"

namespace tutti {
struct Params;
}
namespace tutti::device {
struct Policy;
}

namespace tutti::comm {

struct TuningFilter;

/// A value; constant for the life of a communicator. All of it must be equal on all ranks.
struct TuningSettings {
  std::string plugin;                ///< NCCL_TUNER_PLUGIN; "": what is found under the usual name
  int pat = 2;                       ///< NCCL_PAT_ENABLE: 0 never, 1 wherever allowed, 2 where it pays
  int nThreads = 0;                  ///< of a block; 0: what suits the world
  int ll128Threads = 0;              ///< the same for LL128
  std::int64_t llMessageBytes = -1;  ///< NCCL_P2P_LL_THRESHOLD; -1: what suits the world
  ThreadThresholds thresholds;       ///< NCCL_THREAD_THRESHOLDS
};

/// Picks them from `params`; says in the log (ENV) what it had to bend.
TuningSettings tuningSettingsFrom(const Params& params);

/// Threads and thresholds of `policy` as the settings want them.
device::Policy applySettings(device::Policy policy, const TuningSettings& settings);

/// parseTuningFilter() with NCCL_PAT_ENABLE applied.
Result<TuningFilter> filterFrom(std::string_view algo, std::string_view proto, const TuningSettings& settings);

}  // namespace tutti::comm
