// Words as a head's kernel writes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nccl.h"
#include "transport/collnet/call.h"

namespace tutti::test {

using device::CollNetFunc;

inline collnet::CallWords wordsFor(CollNetFunc func, std::uint64_t bytes, std::uint64_t begin = 0,
                                   std::uint64_t perNode = 0, ncclDataType_t type = ncclInt32,
                                   ncclRedOp_t op = ncclSum) {
  const device::CollNetCall call{func, static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(op)};
  return {call.word(), begin, bytes, perNode, 0, 0};
}

/// Steps of every function, with windows that begin and end anywhere.
inline std::vector<collnet::CallWords> someSteps(std::uint64_t nodes, std::uint64_t areaBytes) {
  std::vector<collnet::CallWords> steps;
  for (const std::uint64_t bytes : {areaBytes, std::uint64_t{4}, std::uint64_t{0}, areaBytes / 2 + 4}) {
    steps.push_back(wordsFor(CollNetFunc::AllReduce, bytes));
    const std::uint64_t perNode = areaBytes / 4 + 12;
    for (const CollNetFunc func : {CollNetFunc::AllGather, CollNetFunc::ReduceScatter}) {
      const std::uint64_t all = nodes * perNode;
      const std::uint64_t window = std::min(bytes, all);
      for (const std::uint64_t begin : {std::uint64_t{0}, (all - window) / 8 * 4, all - window}) {
        steps.push_back(wordsFor(func, window, begin, perNode));
      }
    }
  }
  return steps;
}

}  // namespace tutti::test
