// What a launch is, for people. Plain values.
#pragma once

#include <cstdint>

namespace tutti::comm {

struct LaunchedCall {
  std::uint64_t number = 0;   ///< of its last collective, among all of the communicator
  std::uint8_t function = 0;  ///< ApiFunc (comm/plan/op.h) of its first operation
  bool messages = false;      ///< it has sends and receives only, which have no number
};

}  // namespace tutti::comm
