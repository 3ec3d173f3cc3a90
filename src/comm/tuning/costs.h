// The numbers behind the cost model that no graph decides. Latencies in microseconds, bandwidths in GB/s.
#pragma once

#include <array>

#include "comm/tuning/tuning.h"
#include "topo/channels/costs_constants.h"

namespace tutti::comm::costs {

// ---- GPUs: what hops and links cost is in topo/channels/costs_constants.h. ----

/// How much of its bandwidth a tree reaches, by log2 of the size in units of 64 bytes.
inline constexpr std::array<std::array<double, 24>, device::kProtocols> kTreeEfficiency{{
    {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0, 1.0},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

/// Direct algorithms, tutti's own: one hop each way as in a ring, a little for every peer, and the share of the links
/// that traffic between all pairs reaches. Before the first byte their kernels open a connection to every peer and meet
/// in barriers, which a ring's do not (measured with two ranks, docs/measurements/gpu.md).
inline constexpr double kMeshOpen = 1.3;
inline constexpr double kMeshPeer = 0.05;
inline constexpr double kMeshNvlinkShare = 0.85;
inline constexpr double kMeshPciShare = 0.5;

/// Bytes that the kernels of ranks which share a GPU read and write of its memory together, GB/s: measured on an H100
/// (docs/measurements/gpu.md), of the other generations in proportion to what their data sheets say of their memory.
inline constexpr std::array<double, topo::costs::kGenerations> kDeviceMemory{640.0, 1110.0, 2400.0, 5700.0};

/// While no topology is known: a GPU's links together, by generation, and what one block moves.
inline constexpr std::array<double, topo::costs::kGenerations> kNvlinkTotal{120.0, 240.0, 370.0, 720.0};
inline constexpr std::array<double, topo::costs::kGenerations> kPciTotal{12.0, 24.0, 48.0, 48.0};
inline constexpr std::array<double, topo::costs::kGenerations> kPerBlock{20.0, 24.0, 40.0, 70.0};
inline constexpr double kNetworkTotal = 24.0;
/// Between nodes whose NICs no graph reaches, by channel.
inline constexpr double kUnknownNetwork = 0.1;

// ---- The software GPU. Its devices share the machine's memory: what counts is how often bytes are touched. ----

struct HostCost {
  double base;   ///< of an operation, beyond what all have in common
  double hop;    ///< from one rank to the next
  double peer;   ///< for every peer that is written to and read from
  double touch;  ///< GB/s of reading or writing memory, flags included
};

/// Graph connections (Ring, Tree, PAT) and Mesh connections (OneShot, Direct), by protocol. Fitted to two processes and
/// four devices on a virtual EPYC with two cores; only their proportions decide. LL and LL128 have lines packed and
/// polled by one thread, and a hop costs the same in every protocol: the next rank fetches as many cache lines
/// (docs/measurements/host_protocols.md).
inline constexpr std::array<HostCost, device::kProtocols> kHostGraph{
    {{1.0, 6.0, 0.0, 1.5}, {1.1, 6.0, 0.0, 2.0}, {1.5, 6.0, 0.0, 42.0}}};
inline constexpr std::array<HostCost, device::kProtocols> kHostMesh{
    {{1.0, 6.0, 0.6, 1.5}, {1.1, 6.0, 0.6, 2.0}, {1.5, 6.0, 0.2, 42.0}}};
/// Two ranks that exchange their inputs (device::PairMethod) read half a vector more than in two shots, which costs
/// little until no cache holds it any more (docs/measurements/in_place.md).
inline constexpr std::uint64_t kHostPairBytes = 16 << 20;
inline constexpr double kHostPairTouches = 3;
/// A hop's cost is mostly that the next rank reads what this one has just written. Little data are there at once: then
/// a hop of the Simple protocol costs this share, and none of LL's packing is worth its while.
inline constexpr std::uint64_t kHostShortBytes = 8 << 10;
inline constexpr double kHostShortHop = 0.01;

}  // namespace tutti::comm::costs
