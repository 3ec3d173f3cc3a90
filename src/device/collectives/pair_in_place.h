// AllReduce of two ranks over a network that writes to receive buffers: the ring of two (device/collectives/ring.h)
// over their connections for messages.
//
//     rank 0                             rank 1
//     asks for its half, then for the other one, where they belong
//     sends  in[half 1]                  sends  in[half 0]
//     out[half 0] = in + received        out[half 1] = in + received
//     sends  out[half 0]                 sends  out[half 1]
//     receives out[half 1]               receives out[half 0]
//
// Steps are as long as those of messages. What is sent is offered where it lies, what comes goes to the output. The
// half that is to be reduced takes shared slots instead where the output is the input, which is still needed, or so
// long that it goes past the caches; so does whatever the network cannot reach, and inputs that the operation changes
// are sent through slots. A half that comes back may overwrite the input that was sent for it: the peer had all of that
// before it could send the result.
#pragma once

#include "device/collectives/ring.h"
#include "device/prims/prims_simple.h"
#include "device/prims/recv_requests.h"
#include "device/recv_sequence.h"

namespace tutti::device {

/// For one crew, once. Of ranks that chose the same chunks. `work.chunk`: a step, or a few: a chunk is sent before one
/// is received, and two chunks must fit into the FIFO.
template <class T, class Op>
class PairInPlace {
 public:
  /// Connections of ConnKind::Mesh with the other rank. `streaming`: see PrimsSimple.
  TUTTI_DEVICE PairInPlace(const Crew& crew, const RecvConn& recv, const SendConn& send, const Op& op, bool streaming)
      : crew_(crew),
        conn_(recv),
        prims_(crew, &recv, &send, op, streaming),
        step_(prims_.slotBytes() / sizeof(T)),
        streaming_(streaming) {
    asking_.slots = prims_.sharedTaken();
  }

  TUTTI_DEVICE void allReduce(const Ring& ring, const RingWork& work, const T* in, T* out) {
    std::uint64_t chunk = 0;
    for (std::uint64_t begin = work.part.begin; begin < work.part.end(); begin += 2 * chunk) {
      const Part turn{begin, work.part.end() - begin};
      chunk = ringChunk(turn.count, work.chunk, 2, sizeof(T));
      const Part own = pieceOf(turn, chunk, ring.at(0));
      const Part other = pieceOf(turn, chunk, ring.at(1));
      wants_[0] = {in == out || streaming_ ? nullptr : out + own.begin, own.count};
      wants_[1] = {out + other.begin, other.count};
      want_ = 0;
      askAhead();
      prims_.send(in + other.begin, other.count);
      for (std::uint64_t done = 0; done < own.count; done += step_) {
        askAhead();
        const std::uint64_t at = own.begin + done;
        prims_.recvReduceCopySend(in + at, out + at, smaller(step_, own.count - done));
      }
      for (std::uint64_t done = 0; done < other.count; done += step_) {
        askAhead();
        prims_.recvSlot(out + other.begin + done, smaller(step_, other.count - done));
      }
    }
    prims_.finish();
  }

 private:
  /// Elements that are to come, and where to; null: to a slot.
  struct Want {
    T* into;
    std::uint64_t count;
  };

  /// Asks for as much of the turn as there are places for.
  TUTTI_DEVICE void askAhead() {
    if (conn_.shared.taken == nullptr || crew_.group.rank != 0) return;
    const simt::Thread t = crew_.thread;
    std::uint64_t step = t.loadRelaxedSys(conn_.shared.asked);
    for (; want_ < 2; ++want_) {
      Want& want = wants_[want_];
      while (want.count > 0) {
        const std::uint64_t n = smaller(want.count, step_);
        const auto bytes = static_cast<std::uint32_t>(n * sizeof(T));
        AskedFor place{};
        if (!hasWords(step, prims_.recvStep()) ||
            !findPlace(conn_, asking_, prims_.sharedTaken(), want.into, bytes, place)) {
          return t.storeRelaxedSys(conn_.shared.asked, step);
        }
        ask(t, conn_, step++, place, std::uint64_t{place.slot}, bytes);
        want.count -= n;
        if (want.into != nullptr) want.into += n;
      }
    }
    t.storeRelaxedSys(conn_.shared.asked, step);
  }

  Crew crew_;
  const RecvConn& conn_;
  PrimsSimple<T, Op, MessageFan> prims_;
  const std::uint64_t step_;
  const bool streaming_;
  RecvRequests asking_{};
  Want wants_[2]{};
  int want_ = 2;
};

}  // namespace tutti::device
