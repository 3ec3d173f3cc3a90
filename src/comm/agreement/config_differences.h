// Options of a communicator in which its ranks ought to agree, although each can go on with its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nccl.h"

namespace tutti::topo {
struct PeerInfo;
}

namespace tutti::comm {

inline constexpr std::size_t kComparedOptions = 5;

/// Their values on one rank, as they are in effect there. Trivially copyable.
using ComparedOptions = std::array<std::int32_t, kComparedOptions>;

ComparedOptions comparedOptions(const ncclConfig_t& config);

/// A warning for each option in which ranks differ: its name, two ranks and their values, what comes of it. On rank 0,
/// of the first rank that differs from it, and on every rank that does. `options`: of all ranks.
void warnOfDifferences(std::span<const topo::PeerInfo> peers, std::span<const ComparedOptions> options, int rank);

}  // namespace tutti::comm
