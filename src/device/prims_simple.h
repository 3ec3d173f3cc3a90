// The verbs of algorithms over the Simple protocol: bulk slots, a counter on each side. A verb covers a range of any
// length; it is moved slot by slot, so a peer can work on the first slot while the second is being filled.
//
// Three duties meet in a step. One thread waits for the incoming slot, one for the outgoing slot (their threads are in
// different warps where there are several); all threads move; the waiting threads post. Two barriers per step separate
// them; a group of one thread needs none.
#pragma once

#include "device/fifo_view.h"
#include "device/move.h"
#include "device/partition.h"

namespace tutti::device {

/// What the threads of a group share. Must be zero when the group starts.
struct GroupShared {
  std::uint32_t aborted;
};

/// Who works together.
struct Crew {
  simt::Thread thread;
  simt::Group group;
  unsigned barrier;  ///< named barrier of this group
  GroupShared* shared;
  const std::uint32_t* abortWord;
};

template <class T, class Op>
class PrimsSimple {
 public:
  using Element = T;

  /// `recv`, `send`: connections this group uses, null for none. `streaming`: outputs are large (see Slice).
  TUTTI_DEVICE PrimsSimple(const Crew& crew, const ConnView* recv, const ConnView* send, const Op& op, bool streaming)
      : crew_(crew), op_(op), hasRecv_(recv != nullptr), hasSend_(send != nullptr), streaming_(streaming) {
    if (hasRecv_) recv_ = RecvFifo(crew.thread, *recv, Protocol::Simple);
    if (hasSend_) send_ = SendFifo(crew.thread, *send, Protocol::Simple);
  }

  /// Ends the work: the counters are stored for whoever comes next. Every thread calls it.
  TUTTI_DEVICE void finish() {
    if (hasRecv_ && crew_.group.rank == 0) recv_.save(crew_.thread);
    if (hasSend_ && crew_.group.rank == 0) send_.save(crew_.thread);
    sync();
  }

  /// in -> peer
  TUTTI_DEVICE void send(const T* in, std::uint64_t n) { steps<Verb<true, false, true, false, false>>(in, nullptr, n); }
  /// in -> peer, out
  TUTTI_DEVICE void copySend(const T* in, T* out, std::uint64_t n) {
    if (in == out) return send(in, n);
    steps<Verb<true, false, true, true, false>>(in, out, n);
  }
  /// peer -> out
  TUTTI_DEVICE void recv(T* out, std::uint64_t n) { steps<Verb<false, true, false, true, false>>(nullptr, out, n); }
  /// peer -> out, next peer
  TUTTI_DEVICE void recvCopySend(T* out, std::uint64_t n) {
    steps<Verb<false, true, true, true, false>>(nullptr, out, n);
  }
  /// in + peer -> next peer
  TUTTI_DEVICE void recvReduceSend(const T* in, std::uint64_t n) {
    steps<Verb<true, true, true, false, false>>(in, nullptr, n);
  }
  /// in + peer = complete result -> out
  TUTTI_DEVICE void recvReduceCopy(const T* in, T* out, std::uint64_t n) {
    steps<Verb<true, true, false, true, true>>(in, out, n);
  }
  /// in + peer = complete result -> out, next peer
  TUTTI_DEVICE void recvReduceCopySend(const T* in, T* out, std::uint64_t n) {
    steps<Verb<true, true, true, true, true>>(in, out, n);
  }

  /// in = complete result -> out, without any peer: the whole collective of a lone rank.
  TUTTI_DEVICE void copyLocal(const T* in, T* out, std::uint64_t n) {
    if (n == 0 || (in == out && !Op::kBefore && !Op::kAfter)) return;
    const Slice<T> slice{in, nullptr, out, nullptr, n, streaming_, false};
    moveSlice<Shape<true, false, false, true>>(crew_.group, op_, slice);
  }

  /// A message without content still takes a slot, so that both sides meet.
  TUTTI_DEVICE void sendEmpty() { oneStep<Verb<true, false, true, false, false>>(nullptr, nullptr, 0); }
  TUTTI_DEVICE void recvEmpty() { oneStep<Verb<false, true, false, true, false>>(nullptr, nullptr, 0); }

 private:
  using SendFifo = FifoView<Direction::Send>;
  using RecvFifo = FifoView<Direction::Recv>;

  template <bool kOwn, bool kRecv, bool kSend, bool kOut, bool kFinal>
  struct Verb {
    static constexpr bool own = kOwn;
    static constexpr bool recv = kRecv;
    static constexpr bool send = kSend;
    static constexpr bool out = kOut;
    static constexpr bool final = kFinal;
  };

  TUTTI_DEVICE void sync() const { crew_.thread.syncGroup(crew_.barrier, crew_.group); }
  TUTTI_DEVICE bool waitsForRecv() const { return crew_.group.rank == 0; }
  TUTTI_DEVICE bool waitsForSend() const {
    return crew_.group.rank == (crew_.group.size > simt::kWarpSize ? simt::kWarpSize : 0);
  }

  template <class V>
  TUTTI_DEVICE void steps(const T* in, T* out, std::uint64_t n) {
    const std::uint64_t most = (V::send ? send_.slotBytes() : recv_.slotBytes()) / sizeof(T);
    for (std::uint64_t done = 0; done < n; done += most) {
      oneStep<V>(V::own ? in + done : nullptr, V::out ? out + done : nullptr, smaller(most, n - done));
    }
  }

  /// Not inlined on purpose where a compiler has the choice: algorithms use the same verb in several places.
  template <class V>
  TUTTI_DEVICE void oneStep(const T* in, T* out, std::uint64_t n) {
    const bool alive = acquire<V>();
    if (alive && n > 0) move<V>(in, out, n);
    release<V>(alive);
  }

  /// Both slots are ours after it; false for all threads if the communicator was aborted.
  template <class V>
  TUTTI_DEVICE bool acquire() {
    bool alive = true;
    if (V::recv && waitsForRecv()) alive = recv_.wait(crew_.thread, crew_.abortWord);
    if (V::send && waitsForSend() && !send_.wait(crew_.thread, crew_.abortWord)) alive = false;
    if (!alive) crew_.thread.storeRelaxedSys(&crew_.shared->aborted, std::uint32_t{1});  // both waiters may
    sync();
    return crew_.thread.loadRelaxedSys(&crew_.shared->aborted) == 0;
  }

  template <class V>
  TUTTI_DEVICE void release(bool alive) {
    if (V::send) simt::finishStreaming();
    sync();
    if (V::recv && waitsForRecv() && alive) recv_.post(crew_.thread);
    if (V::send && waitsForSend() && alive) send_.post(crew_.thread);
    if (V::recv) recv_.advance();
    if (V::send) send_.advance();
  }

  template <class V>
  TUTTI_DEVICE void move(const T* in, T* out, std::uint64_t n) {
    Slice<T> slice{in, nullptr, out, nullptr, n, streaming_, false};
    if constexpr (V::recv) slice.received = reinterpret_cast<const T*>(recv_.slot());
    if constexpr (V::send) {
      slice.first = reinterpret_cast<T*>(send_.slot());
      slice.second = out;
      slice.streamFirst = simt::streamingToPeerPays(n * sizeof(T));
      slice.streamSecond = streaming_;
    }
    moveSlice<Shape<V::own, V::recv, V::send && V::out, V::final>>(crew_.group, op_, slice);
  }

  Crew crew_;
  Op op_;
  bool hasRecv_;
  bool hasSend_;
  bool streaming_;
  RecvFifo recv_;
  SendFifo send_;
};

}  // namespace tutti::device
