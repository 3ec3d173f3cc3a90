// The verbs of algorithms over the Simple protocol: bulk slots, a counter on each side. A verb covers a range of any
// length; it is moved slot by slot, so a peer can work on the first slot while the second is being filled.
//
// Three duties meet in a step. One thread waits for the incoming slot, one for the outgoing slot (their threads are in
// different warps where there are several); all threads move; the waiting threads post. Two barriers per step separate
// them; a group of one thread needs none.
//
// What a verb sends may lie ready in this rank's input or output. Where the receiver can read it there, it is offered
// instead of copied into the slot, and the work ends only when the receiver has consumed it.
#pragma once

#include "device/prims/move.h"
#include "device/prims/move_fan.h"
#include "device/prims/prims_verbs.h"

namespace tutti::device {

template <class T, class Op, class FanOf = Fan<1, 1>>
class PrimsSimple : public PrimsVerbs<PrimsSimple<T, Op, FanOf>, Protocol::Simple, T, Op, FanOf> {
  using Base = PrimsVerbs<PrimsSimple, Protocol::Simple, T, Op, FanOf>;
  friend Base;

 public:
  using Base::Base;

  /// Ends the work: what was offered has been read, the counters are stored for whoever comes next. For every thread.
  TUTTI_DEVICE void finish() {
    if (simt::kPulls && offered_ && crew_.group.rank == 0) send_[0].drain(crew_.thread, crew_.abortWord, alive_);
    finishUnread();
  }

  /// The same, but what was offered may not have been read: the caller sees to that.
  TUTTI_DEVICE void finishUnread() {
    saveFifos();
    sync();
  }

  /// send() of input that changes before the peer has read it: it is not offered.
  TUTTI_DEVICE void sendFilling(const T* in, std::uint64_t n) { this->template steps<FillingSend>(in, nullptr, n); }
  /// recv() of at most a slot; nothing is copied where it was asked into `out` (mayAskInto).
  TUTTI_DEVICE void recvSlot(T* out, std::uint64_t n) {
    if constexpr (simt::kPulls) {
      if (recv_[0].askedInto(out, n * sizeof(T))) return inPlaceStep(n * sizeof(T));
    }
    oneStep<Verb<false, true, false, true, false>>(nullptr, out, n);
  }

  /// Bytes of a step that is received, at most.
  TUTTI_DEVICE std::uint32_t slotBytes() const { return recv_[0].slotBytes(); }
  /// The step that is received next.
  TUTTI_DEVICE std::uint64_t recvStep() const { return recv_[0].step(); }
  /// Where slots are shared: how many were received into so far, modulo 2^32.
  TUTTI_DEVICE std::uint32_t sharedTaken() const { return recv_[0].taken(); }

 private:
  using Base::alive_;  // the same for all threads after each barrier
  using Base::crew_;
  using Base::forRecvs;
  using Base::forSends;
  using Base::kRecvs;
  using Base::kSingle;
  using Base::nRecvs_;
  using Base::nSends_;
  using Base::op_;
  using Base::recv_;
  using Base::saveFifos;
  using Base::send_;
  using Base::streaming_;
  using Base::sync;
  using typename Base::RecvFifo;
  using typename Base::SendFifo;

  TUTTI_DEVICE static std::uint32_t payloadOf(std::uint32_t slotBytes) { return slotBytes; }
  /// Each connection has a waiting thread, in a warp of its own where there are enough. Outgoing ones come last.
  TUTTI_DEVICE bool waitsFor(unsigned connection) const {
    const unsigned rank = connection * simt::kWarpSize;
    return crew_.group.rank == (rank < crew_.group.size ? rank : 0);
  }

  template <class V>
  TUTTI_DEVICE void oneStep(const T* in, T* out, std::uint64_t n) {
    const T* ready = nullptr;
    if constexpr (V::offers && simt::kPulls && kSingle) ready = offerOf<V>(in, out, n);
    const bool alive = acquire<V>(n * sizeof(T), ready == nullptr);
    if constexpr (V::offers && simt::kPulls && kSingle) {
      if (ready != nullptr) return offeringStep<V>(in, out, n, ready);
    }
    if (alive && n > 0) move<V>(in, out, n);
    release<V>(alive, n * sizeof(T));
  }

  /// What the verb sends, where it need not be copied into the slot; null where it must.
  template <class V>
  TUTTI_DEVICE const T* offerOf(const T* in, const T* out, std::uint64_t n) const {
    const T* ready = nullptr;
    if constexpr (V::own && !V::recv) {
      if (!changesInput(op_)) ready = in;
    } else if constexpr (V::out) {
      ready = out;
    }
    return ready != nullptr && send_[0].mayOffer(crew_.registered, ready, n * sizeof(T)) ? ready : nullptr;
  }

  /// A step whose content is offered. Input is there already: the receiver need not wait for this rank's own copy.
  template <class V>
  TUTTI_DEVICE void offeringStep(const T* in, T* out, std::uint64_t n, const T* ready) {
    constexpr bool kAtOnce = V::own && !V::recv;
    const bool posts = alive_ && waitsFor(kRecvs);
    if (kAtOnce && posts) send_[0].post(crew_.thread, n * sizeof(T), ready);
    if constexpr (V::out) {
      if (alive_) move<Verb<V::own, V::recv, false, true, V::final>>(in, out, n);
    }
    if constexpr (!kAtOnce) {
      simt::finishStreaming();
      sync();
      const bool fine = alive_ && allIntact();
      if (fine && waitsFor(0)) recv_[0].post(crew_.thread);
      if (fine && posts) send_[0].post(crew_.thread, n * sizeof(T), ready);
      recv_[0].advanceReceived(crew_.thread);
    }
    send_[0].advanceInPlace();
    offered_ = true;
  }

  /// A step whose content the network puts where it belongs.
  TUTTI_DEVICE void inPlaceStep(std::uint64_t bytes) {
    const bool alive = acquire<Verb<false, true, false, true, false>>(bytes, false);
    if (alive && waitsFor(0)) recv_[0].post(crew_.thread);
    recv_[0].advanceInPlace();
  }

  /// After the barrier that follows the move, for every thread: what was read is what was sent. Else this thread has
  /// been aborted.
  TUTTI_DEVICE bool allIntact() {
    if constexpr (simt::kPulls) {
      forRecvs([&](RecvFifo& fifo, int) { alive_ = alive_ && fifo.intact(crew_.thread, crew_.abortWord); });
    }
    return alive_;
  }

  /// All slots are ours after it; false for all threads if the communicator was aborted. `bytes`: of each. `fills`:
  /// those to be sent are filled, not offered.
  template <class V>
  TUTTI_DEVICE bool acquire(std::uint64_t bytes, bool fills) {
    bool alive = alive_;  // once dead, nobody waits again
    if constexpr (V::recv) {
      forRecvs([&](RecvFifo& fifo, int k) {
        if (!alive || !waitsFor(k)) return;
        fifo.expect(crew_.thread, bytes);
        alive = fifo.wait(crew_.thread, crew_.abortWord);
      });
    }
    if constexpr (V::send) {
      forSends([&](SendFifo& fifo, int k) {
        if (!alive || !waitsFor(kRecvs + k)) return;
        alive = fifo.wait(crew_.thread, crew_.abortWord) && (!fills || fifo.waitShared(crew_.thread, crew_.abortWord));
      });
    }
    if (!alive) crew_.thread.storeRelaxedSys(&crew_.shared->aborted, std::uint32_t{1});  // several waiters may
    sync();
    alive_ = crew_.thread.loadRelaxedSys(&crew_.shared->aborted) == 0;
    return alive_;
  }

  template <class V>
  TUTTI_DEVICE void release(bool alive, std::uint64_t bytes) {
    if (V::send) simt::finishStreaming();
    sync();
    if constexpr (V::recv) {
      if (simt::kPulls && alive) alive = allIntact();
      forRecvs([&](RecvFifo& fifo, int k) {
        if (alive && waitsFor(k)) fifo.post(crew_.thread);
        fifo.advanceReceived(crew_.thread);
      });
    }
    if constexpr (V::send) {
      forSends([&](SendFifo& fifo, int k) {
        if (alive && waitsFor(kRecvs + k)) fifo.post(crew_.thread, bytes);
        fifo.advance();
      });
    }
  }

  template <class V>
  TUTTI_DEVICE void move(const T* in, T* out, std::uint64_t n) {
    if constexpr (kSingle) {
      Slice<T> slice{in, nullptr, out, nullptr, n, streaming_, false};
      if constexpr (V::recv) slice.received = reinterpret_cast<const T*>(recv_[0].content(crew_.thread));
      if constexpr (V::send) {
        slice.first = reinterpret_cast<T*>(send_[0].slot());
        slice.second = out;
        slice.streamFirst = simt::streamingToPeerPays(n * sizeof(T));
        slice.streamSecond = streaming_;
      }
      moveSlice<Shape<V::own, V::recv, V::send && V::out, V::final>>(crew_.group, op_, slice);
    } else {
      FanSlice<T, FanOf> slice{
          in, {}, out, {}, nRecvs_, nSends_, n, streaming_, simt::streamingToPeerPays(n * sizeof(T))};
      forRecvs(
          [&](RecvFifo& fifo, int k) { slice.received[k] = reinterpret_cast<const T*>(fifo.content(crew_.thread)); });
      forSends([&](SendFifo& fifo, int k) { slice.sent[k] = reinterpret_cast<T*>(fifo.slot()); });
      moveFan<V>(crew_.group, op_, slice);
    }
  }

  bool offered_ = false;  ///< the receiver reads what the caller may change after the work
};

}  // namespace tutti::device
