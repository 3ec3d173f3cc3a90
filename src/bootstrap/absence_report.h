// What a root says of ranks that do not come, as plain values.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

namespace tutti::bootstrap {

/// What a root says, once, of those who do not come.
struct AbsenceReport {
  std::vector<std::string> members;  ///< of a communicator that grows, by rank: `rank 3 (host gpu07, pid 4711)`
  milliseconds after{0};             ///< the first has come; 0: never
};

}  // namespace tutti::bootstrap
