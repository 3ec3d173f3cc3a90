// How a collective over a network that reduces (collNet) is cut: turns, what each lane of each head has in them, and
// how that lies in the blocks of nodes (docs/protocols.md, "CollNet"). Pure functions, the same on the host and in
// kernels.
//
//   AllReduce, 2 heads of 3 lanes    head 0        | head 1        | head 0        | …
//   the vector, in pieces            0 1 2         | 0 1 2         | 0 1 2         | …      turn 0: the first two
//   groups
//
//   AllGather, 3 lanes, one rail     0 1 2 | 0 1 2 | 0 1 2 | …                              turn 0: the first group
//   blocks of the nodes              node 0    | node 1    | node 2    |                    pieces may span blocks
#pragma once

#include <cstdint>

#include "device/collnet_view.h"
#include "device/partition.h"
#include "device/work.h"

namespace tutti::device {

/// The cut of a work. Every lane takes a step in every turn, also where its piece is empty.
struct CollNetCut {
  std::uint64_t total;  ///< elements: of the vector, or of all blocks of a rail together
  std::uint64_t chunk;  ///< elements of a full piece
  std::uint32_t heads;  ///< that share a turn; 1: each goes through all elements, of its own rail, or there are only
                        ///< lanes, as in chains
  std::uint32_t lanes;  ///< pieces of a head in a turn

  TUTTI_PURE std::uint64_t turns() const { return divideUp(total, chunk * heads * lanes); }
  /// What `n` lanes from lane `first` on have: it lies in a row.
  TUTTI_PURE Part window(std::uint64_t turn, unsigned head, unsigned first, unsigned n) const {
    const std::uint64_t before = (turn * heads + (heads == 1 ? 0 : head)) * lanes + first;
    const std::uint64_t begin = smaller(before * chunk, total);
    return {begin, smaller(n * chunk, total - begin)};
  }
  TUTTI_PURE Part piece(std::uint64_t turn, unsigned head, unsigned lane) const { return window(turn, head, lane, 1); }
  /// How many heads have something for the lane: the first ones.
  TUTTI_PURE unsigned busyHeads(std::uint64_t turn, unsigned lane, unsigned ofHeads) const {
    unsigned n = 0;
    while (n < ofHeads && piece(turn, n, lane).count > 0) ++n;
    return n;
  }
};

/// CollNetDirect: lanes are channels. `count`: CollWork::count.
TUTTI_PURE CollNetCut directCut(Func func, const CollNetView& net, std::uint64_t count, std::uint64_t chunk) {
  const auto lanes = static_cast<std::uint32_t>(net.nChannels);
  if (func == Func::AllReduce) return {count, chunk, static_cast<std::uint32_t>(net.nHeads), lanes};
  return {count * static_cast<std::uint64_t>(net.nNodes), chunk, 1, lanes};
}

/// CollNetChain: lane of a channel is its CollNetChainPlace::position.
TUTTI_PURE CollNetCut chainCut(const CollNetView& net, std::uint64_t count, std::uint64_t chunk) {
  return {count, chunk, 1, static_cast<std::uint32_t>(net.nChannels)};
}

/// What lies in the block of `node` of a range of a rail's blocks; in the coordinates of the range, may be empty.
TUTTI_PURE Part partInBlock(Part range, std::uint64_t block, std::uint64_t node) {
  const std::uint64_t begin = node * block > range.begin ? node * block : range.begin;
  const std::uint64_t end = smaller((node + 1) * block, range.end());
  return {begin, end > begin ? end - begin : 0};
}

/// The operation by nccl.h's number; averages and scaled sums are sums to a network.
TUTTI_PURE std::uint8_t networkOp(DevOp op) {
  return op == DevOp::PreMulSum || op == DevOp::SumPostDiv ? 0 : static_cast<std::uint8_t>(op);
}

TUTTI_PURE CollNetFunc networkFunc(Func func) {
  if (func == Func::AllGather) return CollNetFunc::AllGather;
  return func == Func::ReduceScatter ? CollNetFunc::ReduceScatter : CollNetFunc::AllReduce;
}

/// What the network is asked for in a step of a work.
TUTTI_PURE CollNetCall networkCall(Func func, const CollWork& work) {
  return {networkFunc(func), work.type, networkOp(work.op)};
}

/// What crews of a block do (docs/protocols.md, "CollNet"); a crew's number.
enum class CollNetRole : std::uint8_t { Scatter, Reduce, Broadcast, Gather, None };
inline constexpr unsigned kCollNetRoles = 4;

/// How the threads of a block are shared out, by role; 0: the rank has no such crew. What a role moves decides.
struct CollNetShares {
  unsigned of[kCollNetRoles];
};
TUTTI_PURE CollNetShares directShares(Func func, bool isHead, bool hasOtherHeads) {
  const unsigned head = isHead ? 1 : 0;
  const unsigned others = hasOtherHeads ? 1 : 0;
  if (func == Func::AllGather) return {{0, 1 * head, 2 * head, 2 * others}};
  if (func == Func::ReduceScatter) return {{2 * others, 2 * head, 1 * head, 0}};
  return {{4 * others, 5 * head, 4 * head, 3 * others}};
}
/// Up, where values are combined, and down.
TUTTI_PURE CollNetShares chainShares() {
  return {{0, 3, 2, 0}};
}

/// The crew of a thread, and which of it.
struct CollNetPlace {
  CollNetRole role;
  unsigned rank;
  unsigned size;
};

/// Whole warps where every crew can have one, else one thread each; threads that are left over have no role. A block
/// needs kCollNetRoles threads, on a GPU as many warps.
TUTTI_PURE CollNetPlace collNetPlace(const CollNetShares& shares, unsigned thread, unsigned threads) {
  constexpr unsigned kWarp = 32;
  unsigned crews = 0, all = 0;
  for (unsigned role = 0; role < kCollNetRoles; ++role) {
    crews += shares.of[role] > 0 ? 1 : 0;
    all += shares.of[role];
  }
  const unsigned unit = threads >= crews * kWarp ? kWarp : 1;
  const unsigned spare = unit == 1 ? 0 : threads / kWarp - crews;
  CollNetPlace place{CollNetRole::None, 0, 0};
  unsigned crew = 0, passed = 0, begin = 0;
  for (unsigned role = 0; role < kCollNetRoles; ++role) {
    if (shares.of[role] == 0) continue;
    passed += shares.of[role];
    const unsigned end = (++crew + spare * passed / all) * unit;
    if (thread >= begin && thread < end) place = {static_cast<CollNetRole>(role), thread - begin, end - begin};
    begin = end;
  }
  return place;
}

}  // namespace tutti::device
