// The trace of this process: its beginning and its end, and what its points write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/format.h"

namespace tutti::trace {

/// What is asked for by TUTTI_TRACE and TUTTI_TRACE_MB.
struct Wishes {
  std::string pattern;  ///< empty: no trace
  std::uint64_t megabytes = 32;
  std::string hostId = {};  ///< NCCL_HOSTID
};

/// Opens the file, if one is asked for and none was tried yet; with %r in its name only once `rank` is known (not -1).
/// Where it cannot be opened, one warning says why, and the job goes on without a trace. The child of a fork writes
/// nothing before it calls this itself, and then to a file of its own. Any thread.
void start(const Wishes& wishes, std::string_view library, int rank);
/// Ends the trace as the end of the process does: for tests.
void stop();

/// `pattern` with %h, %p, %r and %% replaced.
std::string expandPattern(std::string_view pattern, std::string_view host, long pid, int rank);

/// The rest needs on(). Any thread.

/// The id of a text; equal texts have one. 0: there is no room left.
std::uint32_t text(std::string_view text);
/// The same, quicker, for texts that never change nor end.
std::uint32_t staticText(const char* text);
/// A number for a communicator, 0 where there is none left.
std::uint16_t addComm(std::uint64_t hash, int rank, int nRanks, int device, std::string_view name);
/// The clock of another host is ours plus `offset` ns, within `error`.
void addClock(std::uint64_t hostHash, std::int64_t offset, std::uint64_t error);
/// A number that no other call or wait of the process has.
std::uint32_t nextNumber();
/// Writes a record of the calling thread, which is filled in.
void write(Record record);

}  // namespace tutti::trace
