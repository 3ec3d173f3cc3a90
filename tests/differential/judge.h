// Compares the memory of a rank with what it must be, bit by bit, and says whose fault a difference is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "differential/operation.h"

namespace differential {

/// What is wrong in the arena of `rank` after the round, or "". `got` begins where the arena begins.
std::string findWrong(const Round& round, const Layout& layout, int rank, std::vector<std::uint8_t> got);

}  // namespace differential
