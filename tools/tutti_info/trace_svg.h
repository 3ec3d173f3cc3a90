// One operation over its ranks, as a picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace_job.h"

namespace tutti::tool {

/// Finds "17" (the collective with that number) or "AllReduce:17"; of several communicators the one with most ranks.
/// Null: there is none.
const Operation* findOperation(const Job& job, const std::string& wish);

/// The picture, as SVG: a row for each rank, with its call, its kernel's channels, its waits and its network requests.
std::string svgOf(const Job& job, const Operation& operation);

}  // namespace tutti::tool
