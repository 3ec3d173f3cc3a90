// What the fuzzers of the XML readers do with an input, for them and for the test that replays their corpora.
#pragma once

#include <string>
#include <string_view>

#include "target.h"

namespace tutti::fuzz {

/// Reads `text` as a topology file, writes it, cuts and fuses it, builds a machine of it and prints it. Returns what
/// went wrong ("" if nothing did): a refusal is nothing wrong, a tree that does not come back as it was is.
std::string driveTopology(std::string_view text);

/// Searches the graphs of the machine that `text` describes, if it has few GPUs, and validates them. Likewise.
std::string driveSearch(std::string_view text);

/// Reads `text` as a graph file for two small machines, writes what came out and reads that again. Likewise.
std::string driveGraphs(std::string_view text);

}  // namespace tutti::fuzz
