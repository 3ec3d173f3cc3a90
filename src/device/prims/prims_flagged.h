// The verbs of algorithms over protocols whose data carry their own arrival: the receiver polls flags, so a sender
// needs neither fence nor counter. What a line looks like is the wire's business (prims_ll.h, prims_ll128.h).
//
// Every thread waits for the lines it reads itself, and for the slot's credit itself: no barrier before data moves.
// One barrier per received slot, before one thread gives the slot back.
//
// A wire has:
//   kProtocol                         its FIFO in a connection
//   kUnitPayload                      bytes of user data in a unit, the smallest thing that is sent
//   kTeam                             threads that move a unit together: 1 or a warp; each has a cell of it
//   kInFlight                         units a team has under way
//   Cell                              the raw bits of a cell; a cell may be partly used
//   payloadOf(slotBytes)              bytes of user data in a slot
//   cellOffset(lane) cellBytes(lane)  where a thread's cell lies in a unit's payload
//   await<N>(poll, unit, cells)       waits for N units `poll.stride` apart; false: aborted
//   put(spot, unit, bytes, cell)      sends a cell of a unit that carries `bytes`
//   unpack(spot, abort, bytes, to)    for a lone thread: waits for a run of units and takes out their payload
//   pack(spot, bytes, from)           for a lone thread: sends a run of units
//   wait(fifo, thread, group, abort)  waits for credit
//   cleansSlot(step)                  whether all lines of the slot must be written in this step …
//   clean(spot, group, units)         … and writes those after the first `units`
#pragma once

#include "device/prims/cells.h"
#include "device/prims/move.h"
#include "device/prims/prims_verbs.h"

namespace tutti::device {

/// Where in a slot a wire works, and for which step.
struct Spot {
  simt::Thread thread;
  simt::Group group;
  std::byte* slot;
  std::uint32_t slotBytes;
  std::uint64_t step;
};

/// … and how it waits there.
struct Poll {
  Spot spot;
  const std::uint32_t* abortWord;
  std::size_t stride;   ///< units between two of a batch
  std::uint64_t bytes;  ///< payload of the step
};

template <class Wire, class T, class Op, class FanOf = Fan<1, 1>>
class PrimsFlagged : public PrimsVerbs<PrimsFlagged<Wire, T, Op, FanOf>, Wire::kProtocol, T, Op, FanOf> {
  using Base = PrimsVerbs<PrimsFlagged, Wire::kProtocol, T, Op, FanOf>;
  friend Base;

 public:
  using Base::Base;

  /// Ends the work: the counters are stored for whoever comes next. Every thread calls it.
  TUTTI_DEVICE void finish() {
    if (!met_) sync();  // a late thread has yet to read where to begin
    saveFifos();
    sync();
  }

  /// Lines are always filled.
  TUTTI_DEVICE void sendFilling(const T* in, std::uint64_t n) { this->send(in, n); }

 private:
  using Base::alive_;  // threads may differ for a while
  using Base::crew_;
  using Base::forRecvs;
  using Base::forSends;
  using Base::kRecvs;
  using Base::kSingle;
  using Base::nRecvs_;
  using Base::op_;
  using Base::recv_;
  using Base::saveFifos;
  using Base::streaming_;
  using typename Base::RecvFifo;
  using typename Base::SendFifo;
  static constexpr int kUnitsInFlight = kSingle ? Wire::kInFlight : 1;
  using Cell = Pack<T, sizeof(typename Wire::Cell)>;
  using Cells = CellsOf<Wire, T>;

  TUTTI_DEVICE static std::uint32_t payloadOf(std::uint32_t slotBytes) { return Wire::payloadOf(slotBytes); }

  TUTTI_DEVICE void sync() {
    Base::sync();
    met_ = true;
  }
  template <class Fifo>
  TUTTI_DEVICE Spot spotOf(const Fifo& fifo) const {
    return {crew_.thread, crew_.group, fifo.slot(), fifo.slotBytes(), fifo.step()};
  }

  template <class V>
  TUTTI_DEVICE void oneStep(const T* in, T* out, std::uint64_t n) {
    if constexpr (V::send) {
      forSends([&](SendFifo& fifo, int) {
        alive_ = alive_ && Wire::wait(fifo, crew_.thread, crew_.group, crew_.abortWord);
      });
    }
    if (alive_) move<V>(in, out, n);
    if constexpr (V::send) {
      tell(n * sizeof(T));
      clean(n * sizeof(T));
    }
    if constexpr (V::recv) {
      sync();  // everybody has read
      forRecvs([&](RecvFifo& fifo, int) {
        if (alive_ && crew_.group.rank == 0) fifo.post(crew_.thread);
        fifo.advance();
      });
    }
    if constexpr (V::send) forSends([](SendFifo& fifo, int) { fifo.advance(); });
  }

  template <class V>
  TUTTI_DEVICE void move(const T* in, T* out, std::uint64_t n) {
    const std::uint64_t bytes = n * sizeof(T);
    if constexpr (simt::kLoneThreads) {
      if (crew_.group.size == 1) {
        moveAlone<V>(in, out, bytes);
      } else {
        moveTogether<V>(in, out, bytes);
      }
    } else {
      moveTogether<V>(in, out, bytes);
    }
  }

  /// After the lines, because whoever reads them in this machine does not wait for it.
  TUTTI_DEVICE void tell(std::uint64_t bytes) {
    if (!alive_ || crew_.group.rank != 0) return;
    forSends([&](SendFifo& fifo, int) { fifo.tell(crew_.thread, bytes); });
  }

  /// Writes the rest of the slots where old flags could be mistaken. The barrier keeps a thread that is still at it
  /// from overwriting what others send in the same slots eight steps later: the receiver waits for none of these lines.
  TUTTI_DEVICE void clean(std::uint64_t bytes) {
    forSends([&](SendFifo& fifo, int) {
      if (!Wire::cleansSlot(fifo.step())) return;
      if (alive_) Wire::clean(spotOf(fifo), crew_.group, unitsOf(bytes));
      sync();
    });
  }

  /// A step without content has one unit all the same.
  TUTTI_DEVICE static std::uint64_t unitsOf(std::uint64_t bytes) {
    return bytes == 0 ? 1 : divideUp(bytes, Wire::kUnitPayload);
  }

  // --- many threads: each has cells of its own

  template <class V>
  TUTTI_DEVICE void moveTogether(const T* in, T* out, std::uint64_t bytes) {
    const std::size_t stride = crew_.group.size / Wire::kTeam;
    const std::uint64_t whole = bytes / Wire::kUnitPayload;
    const std::uint64_t units = unitsOf(bytes);
    std::uint64_t unit = crew_.group.rank / Wire::kTeam;
    const bool aligned =
        ((V::own ? reinterpret_cast<std::uintptr_t>(in) : 0) | (V::out ? reinterpret_cast<std::uintptr_t>(out) : 0)) %
            sizeof(Cell) ==
        0;
    constexpr int kInFlight = V::final && Op::kAfter ? 1 : kUnitsInFlight;
    TUTTI_NO_UNROLL
    for (; aligned && alive_ && unit + (kInFlight - 1) * stride < whole; unit += kInFlight * stride) {
      moveCells<V, kInFlight, true>(in, out, bytes, unit);
    }
    TUTTI_NO_UNROLL
    for (; alive_ && unit < units; unit += stride) moveCells<V, 1, false>(in, out, bytes, unit);
  }

  /// kWhole: every cell is full and aligned.
  template <class V, int kN, bool kWhole>
  TUTTI_DEVICE void moveCells(const T* in, T* out, std::uint64_t bytes, std::uint64_t unit) {
    const unsigned lane = crew_.group.rank % Wire::kTeam;
    const std::size_t stride = crew_.group.size / Wire::kTeam;
    Cell value[kN];
    TUTTI_UNROLL
    for (int u = 0; u < kN; ++u) {
      if constexpr (V::own)
        value[u] = Cells::template load<kWhole>(in, bytes, (unit + u * stride) * Wire::kUnitPayload, lane);
      if constexpr (V::own && Op::kBefore) value[u] = op_.before(value[u]);
    }
    if constexpr (V::recv) {
      forRecvs([&](RecvFifo& fifo, int) {
        typename Wire::Cell got[kN]{};
        alive_ = alive_ && Wire::template await<kN>(Poll{spotOf(fifo), crew_.abortWord, stride, bytes}, unit, got);
        TUTTI_UNROLL
        for (int u = 0; u < kN; ++u) {
          const Cell other = fromBits<Cell>(got[u]);
          if constexpr (V::own) value[u] = op_.combine(value[u], other);
          if constexpr (!V::own) value[u] = other;
        }
      });
    }
    if (!alive_) return;
    TUTTI_UNROLL
    for (int u = 0; u < kN; ++u) {
      const std::uint64_t at = unit + u * stride;
      if constexpr (V::final && Op::kAfter) value[u] = op_.after(value[u]);
      if constexpr (V::send) {
        const auto bits = fromBits<typename Wire::Cell>(value[u]);
        forSends([&](SendFifo& fifo, int) { Wire::put(spotOf(fifo), at, bytes, bits); });
      }
      if constexpr (V::out) Cells::template store<kWhole>(out, bytes, at * Wire::kUnitPayload, lane, value[u]);
    }
  }

  // --- one thread: runs of units through buffers, so that loops over data are loops over arrays

  template <class V>
  TUTTI_DEVICE void moveAlone(const T* in, T* out, std::uint64_t bytes) {
    constexpr std::uint64_t kRun = simt::kRunBytes / Wire::kUnitPayload * Wire::kUnitPayload;
    alignas(64) std::byte got[kRun];
    alignas(64) std::byte made[kRun];
    std::uint64_t begin = 0;
    do {
      const std::uint64_t piece = smaller(kRun, bytes - begin);
      const Run run{begin / Wire::kUnitPayload, piece, simt::filledLater(got), made};
      const T* own = V::own ? in + begin / sizeof(T) : nullptr;
      const T* result = make<V>(own, run);
      if (!alive_) return;
      if constexpr (V::send) {
        forSends([&](SendFifo& fifo, int) { Wire::pack(spotOf(fifo), run.unit, piece, result); });
      }
      if constexpr (V::out) {
        if (piece > 0) simt::copyBytes({0, 1}, out + begin / sizeof(T), result, piece, streaming_);
      }
      begin += piece;
    } while (begin < bytes);
  }

  struct Run {
    std::uint64_t unit;
    std::uint64_t bytes;
    std::byte* got;
    std::byte* made;
  };

  TUTTI_DEVICE bool fetch(RecvFifo& fifo, const Run& run) {
    return Wire::unpack(spotOf(fifo), crew_.abortWord, run.unit, run.bytes, run.got);
  }

  /// The result of a run: where it lies after all sources have been combined.
  template <class V>
  TUTTI_DEVICE const T* make(const T* own, const Run& run) {
    constexpr simt::Group kAlone{0, 1};
    const auto* got = reinterpret_cast<const T*>(run.got);
    auto* made = reinterpret_cast<T*>(run.made);
    const std::uint64_t n = run.bytes / sizeof(T);
    if constexpr (!V::own) {
      alive_ = fetch(recv_[0], run);
      return got;
    } else if constexpr (!V::recv) {
      return makeOwn(own, made, n);
    } else {
      if (nRecvs_ == 0) return makeOwn(own, made, n);
      alive_ = fetch(recv_[0], run);
      if (!alive_) return made;
      moveSlice<Shape<true, true, false, V::final && kRecvs == 1>>(kAlone, op_,
                                                                   Slice<T>{own, got, made, nullptr, n, false, false});
      if constexpr (kRecvs > 1) {
        for (int k = 1; k < nRecvs_ && alive_; ++k) {
          alive_ = fetch(recv_[k], run);
          if (alive_) combineInto(op_, made, got, n);
        }
        if constexpr (V::final && Op::kAfter) {
          moveSlice<Shape<false, true, false, true>>(kAlone, op_,
                                                     Slice<T>{nullptr, made, made, nullptr, n, false, false});
        }
      }
      return made;
    }
  }

  /// This rank's own part of a sum; in weak-memory mode through a buffer, because wires read with plain loads.
  TUTTI_DEVICE const T* makeOwn(const T* own, T* made, std::uint64_t n) {
    if (n == 0 || (!Op::kBefore && !simt::storesAreDelayed())) return own;
    moveSlice<Shape<true, false, false, false>>({0, 1}, op_, Slice<T>{own, nullptr, made, nullptr, n, false, false});
    return made;
  }

  bool met_ = false;  ///< all threads have passed a barrier since they read the counters
};

}  // namespace tutti::device
