// Deterministic inputs and what must come out of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/collective.h"

namespace bench {

/// Fills `elements` elements of device memory with the test input of `rank`.
void fillInput(void* device, std::size_t elements, const Call& call, int rank);

/// Counts the elements of call.recv (recvElements of them) that are not what the collective promises.
std::uint64_t countWrong(const Collective& collective, const Call& call, std::size_t recvElements);

/// Elements of `call.send` that are no longer what fillInput() put there. `elements`: of that buffer.
std::uint64_t countChanged(const Call& call, std::size_t elements);

}  // namespace bench
