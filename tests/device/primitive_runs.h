// Kernels under the dice: all primitives, shapes to run them in, and one function that says whether the result
// of a run is right. A new method joins by itself; messages and shapes are listed in primitive_runs.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/block_executor.h"
#include "device/work.h"

namespace tutti::device::test {

/// A kernel on 32-bit sums (or bytes, where it only copies).
struct Primitive {
  Func func;
  Algorithm algorithm;
  Protocol protocol;
};

struct RunShape {
  int nRanks;
  unsigned nChannels;
  unsigned threads;     ///< of a block
  std::uint64_t count;  ///< elements, of a rank's share where there is one
  std::uint32_t slotBytes = 512;
  unsigned nWorks = 2;  ///< of one launch
  unsigned nLaunches = 2;
  std::uint64_t firstStep = 0;
  bool pulls = false;             ///< receivers read the senders' memory
  bool inPlace = false;           ///< of an AllReduce, on all ranks
  std::uint32_t sharedSlots = 0;  ///< of messages over a network; 0: each connection has its own
  int nodes = 1;                  ///< of a network that reduces by itself …
  int heads = 0;                  ///< … and its heads on each of them; 0: there is none
};

/// All that exist: what methodExists() says, and messages in each protocol they have.
std::vector<Primitive> primitives();
/// The kernel, e.g. "tutti_AllReduce_Ring_Simple_Sum_i32".
std::string primitiveName(const Primitive& primitive);
/// Shapes that together reach every barrier, fence and release of `primitive`.
std::vector<RunShape> shapesFor(const Primitive& primitive);
std::string shapeName(const RunShape& shape);

/// Runs it on all ranks of a world of its own. Empty: every byte is right. Otherwise what is wrong.
std::string runPrimitive(const Primitive& primitive, const RunShape& shape, const BlockExecutor::Seeds& seeds);

/// `n`-th pair of seeds that tests use: weak memory always, the schedule in turn for the first, then random.
BlockExecutor::Seeds seedsOf(std::uint64_t n);

}  // namespace tutti::device::test
