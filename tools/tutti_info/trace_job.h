// The traces of a job's processes on one clock, and its operations put together from what each rank tells of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace_file.h"

namespace tutti::tool {

/// How the clock of a process came to be the job's.
struct ClockShift {
  std::int64_t shift = 0;   ///< job's time = process's + shift
  std::uint64_t error = 0;  ///< it is right within this
  bool measured = true;     ///< false: by the hosts' calendars, which may be wrong by any amount
};

/// One collective as one rank saw it. Job's time in nanoseconds; 0: the trace does not say.
struct OperationPart {
  std::size_t process = 0;
  int rank = 0;
  std::uint64_t asked = 0;
  std::uint64_t launchBegin = 0;
  std::uint64_t launched = 0;
  std::uint64_t kernelBegin = 0;
  std::uint64_t kernelEnd = 0;
  std::uint64_t network = 0;  ///< ns in which requests of the network were under way after all had launched
  std::string why;            ///< the plan
};

/// One collective of all ranks whose traces there are.
struct Operation {
  std::uint64_t comm = 0;  ///< hash of the communicator
  std::uint32_t number = 0;
  int nRanks = 0;
  std::string function;
  std::uint64_t bytes = 0;
  std::vector<OperationPart> parts;  ///< by rank

  /// When a part came: its kernel's begin where those of all are known, for hosts run ahead of devices; else its call.
  std::uint64_t arrival(const OperationPart& part) const;
  /// Index of the part that came last.
  std::size_t last() const;
  /// How long after the last of the others that was; 0 where there are no others.
  std::uint64_t lateness() const;
  /// What the others together waited for it.
  std::uint64_t lostByOthers() const;
  /// When the last rank had launched, as far as is known.
  std::uint64_t allLaunched() const;
};

struct Job {
  std::vector<ProcessTrace> processes;
  std::vector<ClockShift> clocks;     ///< by process
  std::vector<Operation> operations;  ///< by the time of the first call

  /// A process's time as the job's.
  std::uint64_t at(std::size_t process, std::uint64_t time) const {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(time) + clocks[process].shift);
  }
};

/// Puts processes on the clock of the first one's host, and operations together.
Job joinTraces(std::vector<ProcessTrace> processes);

}  // namespace tutti::tool
