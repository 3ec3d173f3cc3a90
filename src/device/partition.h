// Who moves what: how a collective's elements are spread over channels, loops, ring chunks and slots. Pure functions,
// the same on the host and in kernels: two ranks that disagreed here would wait for each other for ever.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/policy.h"

namespace tutti::device {

/// A range of elements (or bytes).
struct Part {
  std::uint64_t begin;
  std::uint64_t count;
  TUTTI_PURE std::uint64_t end() const { return begin + count; }
};

TUTTI_PURE std::uint64_t smaller(std::uint64_t a, std::uint64_t b) {
  return a < b ? a : b;
}
TUTTI_PURE std::uint64_t divideUp(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0);
}

/// Elements of one grain.
TUTTI_PURE std::uint64_t grainOf(std::size_t elementBytes) {
  return kGrainBytes / elementBytes;
}

/// The part of channel `index` of `channels`: whole grains, as even as possible; late channels may get nothing.
TUTTI_PURE Part channelPart(std::uint64_t count, std::size_t elementBytes, unsigned channels, unsigned index) {
  const std::uint64_t grain = grainOf(elementBytes);
  const std::uint64_t grains = divideUp(count, grain);
  const std::uint64_t each = grains / channels;
  const std::uint64_t extra = grains % channels;
  const std::uint64_t first = each * index + smaller(index, extra);
  const std::uint64_t last = first + each + (index < extra ? 1 : 0);
  const std::uint64_t begin = smaller(first * grain, count);
  return {begin, smaller(last * grain, count) - begin};
}

/// One turn of a ring all-reduce covers `ranks` chunks of this many elements: full chunks while there is enough, then
/// what is left in even shares of whole grains.
TUTTI_PURE std::uint64_t ringChunk(std::uint64_t left, std::uint64_t fullChunk, unsigned ranks,
                                   std::size_t elementBytes) {
  if (left / ranks >= fullChunk) return fullChunk;
  const std::uint64_t grain = grainOf(elementBytes);
  return smaller(divideUp(divideUp(left, ranks), grain) * grain, fullChunk);
}

/// Piece `index` of `within` when it is cut every `size` elements; empty beyond the end.
TUTTI_PURE Part pieceOf(Part within, std::uint64_t size, std::uint64_t index) {
  const std::uint64_t offset = smaller(size * index, within.count);
  return {within.begin + offset, smaller(size, within.count - offset)};
}

static_assert(channelPart(1, 4, 2, 0).count == 1 && channelPart(1, 4, 2, 1).count == 0);
static_assert(ringChunk(2, 1024, 2, 4) == 128, "a tiny message is one rank's chunk");

}  // namespace tutti::device
