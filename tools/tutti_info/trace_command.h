// tutti-info trace: what traces (TUTTI_TRACE) tell.
#pragma once

#include <string>
#include <vector>

namespace tutti::tool {

/// What is asked for.
struct TraceCommand {
  std::vector<std::string> files;
  std::string output;     ///< for the Perfetto UI; empty: none
  bool summary = false;   ///< in words, to standard output; also where nothing else is asked for
  std::string operation;  ///< a picture of it, to standard output; empty: none
};

/// The exit code: 1 where a file cannot be read at all, or nothing is there to be told.
int runTraceCommand(const TraceCommand& command);

}  // namespace tutti::tool
