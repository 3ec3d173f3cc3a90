// The inner loops on their own; their use is tested with the collectives.
#include "device/prims/move.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace tutti::device {
namespace {

constexpr std::size_t kMost = 70;
using Buffer = std::array<std::int8_t, kMost + 48>;

Buffer numbered(int first) {
  Buffer buffer;
  for (int i = 0; i < static_cast<int>(buffer.size()); ++i) buffer[i] = static_cast<std::int8_t>(first + i % 90);
  return buffer;
}

/// Two threads of a group copy `count` bytes one after the other.
void copyByTwo(std::int8_t* to, const std::int8_t* from, std::size_t count) {
  for (unsigned rank = 0; rank < 2; ++rank) {
    copyTogether<Shape<true, false, false, true>>(simt::Group{rank, 2}, CopyOp<std::int8_t>(),
                                                  Slice<std::int8_t>{from, nullptr, to, nullptr, count, false, false});
  }
}

TEST(Move, CopiesJustTheBytesAskedForAtEveryAlignment) {
  alignas(16) const Buffer source = numbered(1);
  for (std::size_t shift = 0; shift < 16; ++shift) {
    for (std::size_t against = 0; against < 16; ++against) {
      for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{64}, kMost - 7, kMost}) {
        alignas(16) Buffer target = numbered(-120);
        Buffer expected = target;
        const std::size_t to = 16 + shift;
        std::memcpy(expected.data() + to, source.data() + against, count);
        copyByTwo(target.data() + to, source.data() + against, count);
        ASSERT_EQ(target, expected) << "to " << to << ", from " << against << ", " << count << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace tutti::device
