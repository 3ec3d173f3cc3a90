// Four numbers worked out side by side, where compilers do not find that themselves. Pure.
#pragma once

#include <cstddef>
#include <cstring>

namespace tutti::topo {

using Four = float __attribute__((vector_size(16)));

inline constexpr std::size_t kLanesOfFour = 4;

inline Four loadFour(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}

inline void storeFour(float* to, Four four) {
  std::memcpy(to, &four, sizeof(four));
}

inline Four allFour(float value) {
  return Four{value, value, value, value};
}

/// So many numbers and what is missing to whole fours.
inline std::size_t paddedToFour(std::size_t count) {
  return (count + kLanesOfFour - 1) / kLanesOfFour * kLanesOfFour;
}

}  // namespace tutti::topo
