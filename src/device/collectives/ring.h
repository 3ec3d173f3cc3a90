// Collectives on a ring, over any Prims.
//
//        0 -> 1 -> 2 -> 3        data only ever flows from a rank to its next
//        ^--------------'
//
// Definitions. n ranks. `at(k)` is the rank k places after this one; at(n-1) is the one before. A vector is cut into n
// chunks named after ranks. Reducing, chunk c starts at the rank after c, collects every rank's part on its way round
// and is complete at c. Gathering, chunk c starts at c and is dropped off at every rank.
//
//   reduce-scatter, n = 4, seen from one rank      all-gather
//     step 0   send            at(3)                 step 0   copySend        at(0)
//     step 1   recvReduceSend  at(2)                 step 1   recvCopySend    at(3)
//     step 2   recvReduceSend  at(1)                 step 2   recvCopySend    at(2)
//     step 3   recvReduceCopy  at(0)                 step 3   recv            at(1)
//
// An all-reduce is one after the other, joined in the middle: step 3 also sends. On the software GPU two ranks may
// exchange their inputs instead (PairMethod). Ranks must agree on the length of each chunk; an empty one is skipped by
// all (verbs do nothing for 0 elements).
#pragma once

#include "device/partition.h"
#include "device/simt/simt.h"
#include "device/work.h"

namespace tutti::device {

/// The ring as one rank sees it.
struct Ring {
  const std::int32_t* ranks;  ///< starting at this rank
  int n;
  TUTTI_DEVICE int at(int distance) const { return ranks[distance]; }
};

/// What a channel does of a work: elements, in the user's numbering.
struct RingWork {
  Part part;
  std::uint64_t count;  ///< of the whole work, as CollWork::count
  std::uint64_t chunk;  ///< elements of a full chunk
  std::int32_t root;
};

/// Two ranks: each sends all of its input and reduces what comes. As much travels as on the ring, but once there
/// instead of there and back, and all of it may be on the way at once. Each names its own input first, so combining
/// must not depend on the order.
template <class Prims, class T>
TUTTI_DEVICE void pairAllReduce(Prims& prims, const RingWork& work, const T* in, T* out) {
  for (std::uint64_t begin = work.part.begin; begin < work.part.end(); begin += work.chunk) {
    const std::uint64_t n = smaller(work.chunk, work.part.end() - begin);
    if (in == out) {
      prims.sendFilling(in + begin, n);
    } else {
      prims.send(in + begin, n);
    }
    prims.recvReduceCopy(in + begin, out + begin, n);
  }
}

template <class Prims, class T>
TUTTI_DEVICE void ringAllReduce(Prims& prims, const Ring& ring, const RingWork& work, const T* in, T* out) {
  if (ring.n == 1) return prims.copyLocal(in + work.part.begin, out + work.part.begin, work.part.count);
  std::uint64_t chunk = 0;
  for (std::uint64_t begin = work.part.begin; begin < work.part.end(); begin += chunk * ring.n) {
    const Part turn{begin, work.part.end() - begin};
    chunk = ringChunk(turn.count, work.chunk, ring.n, sizeof(T));
    Part c = pieceOf(turn, chunk, ring.at(ring.n - 1));
    prims.send(in + c.begin, c.count);
    for (int distance = ring.n - 2; distance > 0; --distance) {
      c = pieceOf(turn, chunk, ring.at(distance));
      prims.recvReduceSend(in + c.begin, c.count);
    }
    c = pieceOf(turn, chunk, ring.at(0));
    prims.recvReduceCopySend(in + c.begin, out + c.begin, c.count);
    for (int distance = ring.n - 1; distance > 1; --distance) {
      c = pieceOf(turn, chunk, ring.at(distance));
      prims.recvCopySend(out + c.begin, c.count);
    }
    c = pieceOf(turn, chunk, ring.at(1));
    prims.recv(out + c.begin, c.count);
  }
}

/// `in` holds n blocks of work.count elements, `out` one.
template <class Prims, class T>
TUTTI_DEVICE void ringReduceScatter(Prims& prims, const Ring& ring, const RingWork& work, const T* in, T* out) {
  if (ring.n == 1) return prims.copyLocal(in + work.part.begin, out + work.part.begin, work.part.count);
  for (std::uint64_t done = 0; done < work.part.count; done += work.chunk) {
    const std::uint64_t offset = work.part.begin + done;
    const std::uint64_t n = smaller(work.chunk, work.part.count - done);
    prims.send(in + ring.at(ring.n - 1) * work.count + offset, n);
    for (int distance = ring.n - 2; distance > 0; --distance) {
      prims.recvReduceSend(in + ring.at(distance) * work.count + offset, n);
    }
    prims.recvReduceCopy(in + ring.at(0) * work.count + offset, out + offset, n);
  }
}

/// `in` holds one block of work.count elements, `out` n.
template <class Prims, class T>
TUTTI_DEVICE void ringAllGather(Prims& prims, const Ring& ring, const RingWork& work, const T* in, T* out) {
  T* const own = out + ring.at(0) * work.count;
  if (ring.n == 1) return prims.copyLocal(in + work.part.begin, own + work.part.begin, work.part.count);
  for (std::uint64_t done = 0; done < work.part.count; done += work.chunk) {
    const std::uint64_t offset = work.part.begin + done;
    const std::uint64_t n = smaller(work.chunk, work.part.count - done);
    prims.copySend(in + offset, own + offset, n);
    for (int distance = ring.n - 1; distance > 1; --distance) {
      prims.recvCopySend(out + ring.at(distance) * work.count + offset, n);
    }
    prims.recv(out + ring.at(1) * work.count + offset, n);
  }
}

/// A chain that starts at the root and ends before it.
template <class Prims, class T>
TUTTI_DEVICE void ringBroadcast(Prims& prims, const Ring& ring, const RingWork& work, const T* in, T* out) {
  if (ring.n == 1) return prims.copyLocal(in + work.part.begin, out + work.part.begin, work.part.count);
  const bool first = ring.at(0) == work.root;
  const bool last = ring.at(1) == work.root;
  for (std::uint64_t done = 0; done < work.part.count; done += work.chunk) {
    const std::uint64_t offset = work.part.begin + done;
    const std::uint64_t n = smaller(work.chunk, work.part.count - done);
    if (first) {
      prims.copySend(in + offset, out + offset, n);
    } else if (last) {
      prims.recv(out + offset, n);
    } else {
      prims.recvCopySend(out + offset, n);
    }
  }
}

/// A chain that starts after the root and ends at it.
template <class Prims, class T>
TUTTI_DEVICE void ringReduce(Prims& prims, const Ring& ring, const RingWork& work, const T* in, T* out) {
  if (ring.n == 1) return prims.copyLocal(in + work.part.begin, out + work.part.begin, work.part.count);
  const bool first = ring.at(ring.n - 1) == work.root;
  const bool last = ring.at(0) == work.root;
  for (std::uint64_t done = 0; done < work.part.count; done += work.chunk) {
    const std::uint64_t offset = work.part.begin + done;
    const std::uint64_t n = smaller(work.chunk, work.part.count - done);
    if (first) {
      prims.send(in + offset, n);
    } else if (last) {
      prims.recvReduceCopy(in + offset, out + offset, n);
    } else {
      prims.recvReduceSend(in + offset, n);
    }
  }
}

}  // namespace tutti::device
