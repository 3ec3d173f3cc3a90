// Types that are the same for GPUs and for the software GPU. Include simt.h, not this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tutti::simt {

struct alignas(16) Pack16 {
  std::uint64_t word[2];
};

/// Threads that share a piece of work.
struct Group {
  unsigned rank;
  unsigned size;
};

/// The unsigned integer of 1, 2, 4 or 8 bytes; void for other sizes, which nothing can be made of.
template <std::size_t kBytes>
using UnsignedOf =
    std::conditional_t<kBytes == 1, std::uint8_t,
                       std::conditional_t<kBytes == 2, std::uint16_t,
                                          std::conditional_t<kBytes == 4, std::uint32_t,
                                                             std::conditional_t<kBytes == 8, std::uint64_t, void>>>>;

}  // namespace tutti::simt
