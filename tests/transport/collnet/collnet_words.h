// Words as a head's kernel writes them.
#pragma once

#include <cstdint>

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

}  // namespace tutti::test
