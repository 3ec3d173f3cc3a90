// What the fuzzers do with an input, for them and for the test that replays their corpora.
#pragma once

#include <string>
#include <string_view>

namespace tutti::fuzz {

/// Reads `text` as a topology file, writes it, cuts and fuses it, builds a machine of it and prints it. Returns what
/// went wrong ("" if nothing did): a refusal is nothing wrong, a tree that does not come back as it was is.
std::string driveTopology(std::string_view text);

/// Searches the graphs of the machine that `text` describes, if it has few GPUs, and validates them. Likewise.
std::string driveSearch(std::string_view text);

/// Reads `text` as a graph file for two small machines, writes what came out and reads that again. Likewise.
std::string driveGraphs(std::string_view text);

/// What the fuzzer that is being built does: one of these.
std::string driveTarget(std::string_view text);

/// Lets the library say nothing: inputs are refused by the thousand.
void silenceLog();

}  // namespace tutti::fuzz
