// What the tuner knows and what it weighed, in words.
#pragma once

#include <string>
#include <vector>

#include "comm/tuning/choice.h"

namespace tutti::comm {

/// The table that was weighed, on one line: "RING/LL 7.8 us, RING/SIMPLE 15.2 us, …; no kernel: …".
std::string describeCandidates(const Tuning& tuning, const Request& request);

/// Latencies and bandwidths of all combinations, line by line, as rank 0 shows them when the communicator comes up.
std::vector<std::string> describeTuning(const Tuning& tuning);

/// "threadThresholds 8/8/64 | 32/8/64 | 0 | 0": of Tree and Ring by protocol; CollNet and NVLS are not there.
std::string thresholdsLine(const TuningInput& input);

}  // namespace tutti::comm
