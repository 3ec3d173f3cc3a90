// The main program shared by all benchmarks.
#pragma once

#include "bench/collective.h"

namespace bench {

/// Parses the command line, runs every size, type and op, prints the report. Returns the process's exit code: 0 when
/// everything ran and no checked element was wrong.
int runPerf(const Collective& collective, int argc, char** argv);

}  // namespace bench
