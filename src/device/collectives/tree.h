// All-reduce on a tree, over any Prims with several connections: partial results flow up, the complete one down.
//
//   root    own + children -> out, children           recvReduceCopySend
//   inner   up: own + children -> parent              recvReduceSend
//           down: parent -> out, children             recvCopySend
//   leaf    the same without children: it sends up, and receives
//
// Own data come first, then the children's in the order of TreeView::down: only the root finishes a result, so every
// rank ends with the same bits. A channel's range is cut into chunks, and several are on their way: two crews of a
// block work in the two directions at the same time; a lone thread takes turns, sending chunk c up before it passes
// chunk c - kLag down.
//
// Why the turns of a lone thread cannot block each other: passing chunk c down needs the parent to have passed it down,
// which comes after its "up" of chunk c, which needs this rank's "up" of chunk c, which came before. The "up" of chunk
// c needs the children's, which come after their "down" of chunk c - 1 - kLag, which needs this rank's, which came
// before. Slots: a parent takes chunk c - kSteps before it waits for chunk c of anybody, and kLag is less than kSteps.
#pragma once

#include "device/partition.h"
#include "device/simt/simt.h"
#include "device/work.h"

namespace tutti::device {

/// What a channel does of a work: elements.
struct TreeWork {
  Part part;
  std::uint64_t chunk;  ///< elements of a full chunk

  TUTTI_PURE std::uint64_t chunks() const { return divideUp(part.count, chunk); }
  TUTTI_PURE Part at(std::uint64_t index) const { return pieceOf(part, chunk, index); }
};

/// Chunks that a lone thread has sent up before it passes the first one down. Each takes one slot.
inline constexpr std::uint64_t kTreeLag = kSteps / 2;

/// The root's part: everything meets here and leaves from here.
template <class Prims, class T>
TUTTI_DEVICE void treeRoot(Prims& prims, const TreeWork& work, const T* in, T* out) {
  for (std::uint64_t i = 0; i < work.chunks(); ++i) {
    const Part c = work.at(i);
    prims.recvReduceCopySend(in + c.begin, out + c.begin, c.count);
  }
}

template <class Prims, class T>
TUTTI_DEVICE void treeUp(Prims& prims, const TreeWork& work, const T* in) {
  for (std::uint64_t i = 0; i < work.chunks(); ++i) {
    const Part c = work.at(i);
    prims.recvReduceSend(in + c.begin, c.count);
  }
}

template <class Prims, class T>
TUTTI_DEVICE void treeDown(Prims& prims, const TreeWork& work, T* out) {
  for (std::uint64_t i = 0; i < work.chunks(); ++i) {
    const Part c = work.at(i);
    prims.recvCopySend(out + c.begin, c.count);
  }
}

/// Both directions by one crew; `out` and `down` in bytes.
template <class UpPrims, class DownPrims, class T>
TUTTI_DEVICE void treeUpAndDown(UpPrims& up, DownPrims& down, const TreeWork& work, const T* in, std::int8_t* out) {
  const std::uint64_t chunks = work.chunks();
  for (std::uint64_t i = 0; i < chunks + kTreeLag; ++i) {
    if (i < chunks) {
      const Part c = work.at(i);
      up.recvReduceSend(in + c.begin, c.count);
    }
    if (i >= kTreeLag) {
      const Part c = work.at(i - kTreeLag);
      down.recvCopySend(out + c.begin * sizeof(T), c.count * sizeof(T));
    }
  }
}

}  // namespace tutti::device
