// Reading the file of a trace (trace/format.h), whole or broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/format.h"

namespace tutti::tool {

/// A communicator as one process saw it.
struct TracedComm {
  std::uint64_t hash = 0;  ///< equal on all its ranks
  int rank = -1;
  int nRanks = 0;
  int device = -1;
  std::string name;
};

struct TracedThread {
  std::uint32_t tid = 0;
  std::string name;
};

/// What one process has written. Times are nanoseconds of its host's clock.
struct ProcessTrace {
  std::string path;
  std::string host;
  std::string library;
  std::uint32_t pid = 0;
  std::uint64_t hostHash = 0;
  std::uint64_t openedMonotonic = 0;
  std::uint64_t openedRealtime = 0;
  std::uint64_t closed = 0;            ///< 0: the process did not end in order, or lives
  std::vector<trace::Record> records;  ///< in the order in which they were begun
  std::map<std::uint32_t, std::string> texts;
  std::map<std::uint16_t, TracedThread> threads;
  std::map<std::uint16_t, TracedComm> comms;
  std::vector<trace::ClockNote> clocks;
  std::uint64_t lost = 0;     ///< records that newer ones have replaced
  std::uint64_t damaged = 0;  ///< records that are not whole, or make no sense
  std::vector<std::string> remarks;

  /// "" where there is none.
  std::string text(std::uint32_t id) const;
  /// Of the communicator with that number; null: there is none.
  const TracedComm* comm(std::uint16_t number) const;
  /// Its communicator with most ranks, and of these its own lowest; null: it is in none.
  const TracedComm* largest() const;
  /// The rank in that, or -1.
  int rank() const;
  /// "rank 3 (host a, pid 17)", "ranks 0 to 3 (host a, pid 17)".
  std::string title() const;
};

/// Takes a file as far as it goes; what is not as it should be is in `remarks`. Nothing, and `why`: it is no trace, or
/// of a version that this reader does not know.
std::optional<ProcessTrace> parseTrace(std::span<const std::byte> file, std::string& why);
/// The same of a file by name.
std::optional<ProcessTrace> readTrace(const std::string& path, std::string& why);

}  // namespace tutti::tool
