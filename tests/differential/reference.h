// What operations do to the memory of all ranks, on plain arrays and one after the other: the definitions of the API,
// written without a look at how the library does it.
#pragma once

#include <cstdint>
#include <vector>

#include "differential/operation.h"

namespace differential {

using Memory = std::vector<std::vector<std::uint8_t>>;  ///< the arena of each rank

/// Carries out one operation. Results that are not known to the bit are left as they were and added to `inexact`.
void carryOut(const Operation& operation, const Layout& layout, Memory& memory, std::vector<Inexact>& inexact);

}  // namespace differential
