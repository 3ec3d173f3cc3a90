// The numbers behind the cost model. Latencies in microseconds, bandwidths in GB/s.
#pragma once

#include <array>

#include "comm/tuning.h"

namespace tutti::costs {

/// By protocol: LL, LL128, Simple.
using PerProtocol = std::array<double, device::kProtocols>;

// ---- GPUs. Tables and formulae follow NCCL's published tuning constants, so that switch points feel familiar. ----

/// What one launch and the work around the data cost.
inline constexpr PerProtocol kTreeBase{6.8, 14.0, 8.4};
inline constexpr PerProtocol kRingBase{6.6, 14.0, 8.4};
inline constexpr PerProtocol kPatBase{8.0, 8.0, 8.0};

/// One hop, by kind of link.
enum Link { kNvlink, kPci, kNetwork, kLinks };
inline constexpr std::array<PerProtocol, kLinks> kTreeHop{{{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}};
inline constexpr std::array<PerProtocol, kLinks> kRingHop{{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}};
inline constexpr std::array<double, kLinks> kPatHop{4.0, 4.0, 14.0};

/// Rows: compute capability below 8, 8, 9, from 10. Columns: one node, two, more.
enum Generation { kVolta, kAmpere, kHopper, kBlackwell, kGenerations };
using PerNodes = std::array<double, 3>;
inline constexpr std::array<PerNodes, kGenerations> kLlMost{
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
inline constexpr std::array<PerNodes, kGenerations> kRingLl128PerChannel{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}}};
inline constexpr std::array<PerNodes, kGenerations> kTreeLl128PerChannel{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
inline constexpr std::array<PerNodes, kGenerations> kTreePerChannel{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};

/// How much of its bandwidth a tree reaches, by log2 of the size in units of 64 bytes.
inline constexpr std::array<std::array<double, 24>, device::kProtocols> kTreeEfficiency{{
    {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0, 1.0},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

/// Direct algorithms, tutti's own: one hop each way as in a ring, a little for every peer, and the share of the links
/// that traffic between all pairs reaches.
inline constexpr double kMeshPeer = 0.05;
inline constexpr double kMeshNvlinkShare = 0.85;
inline constexpr double kMeshPciShare = 0.5;

/// While no topology is known: a GPU's links together, by generation, and what one block moves.
inline constexpr std::array<double, kGenerations> kNvlinkTotal{120.0, 240.0, 370.0, 720.0};
inline constexpr std::array<double, kGenerations> kPciTotal{12.0, 24.0, 48.0, 48.0};
inline constexpr std::array<double, kGenerations> kPerBlock{20.0, 24.0, 40.0, 70.0};
inline constexpr double kNetworkTotal = 24.0;

// ---- The software GPU. Its devices share the machine's memory: what counts is how often bytes are touched. ----

struct HostCost {
  double base;    ///< of an operation, beyond what all have in common
  double hop;     ///< from one rank to the next
  double peer;    ///< for every peer that is written to and read from
  double touch;   ///< GB/s of reading or writing memory, flags included
};

/// Graph connections (Ring, Tree, PAT) and Mesh connections (OneShot, Direct), by protocol. Fitted to two processes and
/// four devices on a virtual EPYC with two cores; only their proportions decide.
inline constexpr std::array<HostCost, device::kProtocols> kHostGraph{
    {{1.0, 0.4, 0.0, 3.0}, {1.1, 0.5, 0.0, 6.0}, {1.5, 6.0, 0.0, 42.0}}};
inline constexpr std::array<HostCost, device::kProtocols> kHostMesh{
    {{1.0, 0.4, 0.6, 3.0}, {1.1, 0.5, 0.6, 6.0}, {1.5, 6.0, 0.2, 42.0}}};
/// A hop's cost is mostly that the next rank reads what this one has just written. Little data are there at once: then a
/// hop of the Simple protocol costs this share, and none of LL's packing is worth its while.
inline constexpr std::uint64_t kHostShortBytes = 8 << 10;
inline constexpr double kHostShortHop = 0.01;

}  // namespace tutti::costs
