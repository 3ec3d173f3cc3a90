// A job's traces for the Perfetto UI.
#pragma once

#include <string>

#include "trace_job.h"

namespace tutti::tool {

/// The file's content. Tracks: docs/tracing.md.
std::string perfettoOf(const Job& job);

/// What began and did not end, by the index of its record: all records that are open and have no end.
std::vector<std::size_t> unfinished(const ProcessTrace& trace);
/// The time of the last event.
std::uint64_t lastMoment(const ProcessTrace& trace);

}  // namespace tutti::tool
