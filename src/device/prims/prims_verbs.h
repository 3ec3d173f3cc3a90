// The verbs of algorithms, whatever the protocol: the connections of a crew, and how a range of elements becomes steps.
// What a step does is the protocol's business (prims_simple.h, prims_flagged.h).
#pragma once

#include "device/partition.h"
#include "device/prims/fifo_view.h"
#include "device/prims/move.h"
#include "device/prims/prims_common.h"

namespace tutti::device {

/// Base of `Prims`, which has
///   oneStep<V>(in, out, n)   one step of verb V; of no elements, too, where it takes a slot
///   payloadOf(slotBytes)     bytes of user data in a slot; static
template <class Prims, Protocol kProtocol, class T, class Op, class FanOf>
class PrimsVerbs {
 public:
  using Element = T;
  using Peers = ConnPeers<FanOf>;

  /// `streaming`: outputs are large (see Slice).
  TUTTI_DEVICE PrimsVerbs(const Crew& crew, const Peers& peers, const Op& op, bool streaming)
      : crew_(crew), op_(op), streaming_(streaming) {
    TUTTI_UNROLL
    for (int k = 0; k < kRecvs; ++k) {
      if (peers.recv[k] != nullptr) recv_[k] = RecvFifo(crew.thread, *peers.recv[k]), nRecvs_ = k + 1;
    }
    TUTTI_UNROLL
    for (int k = 0; k < kSends; ++k) {
      if (peers.send[k] != nullptr) send_[k] = SendFifo(crew.thread, *peers.send[k]), nSends_ = k + 1;
    }
  }
  /// `recv`, `send`: connections this crew uses, null for none.
  TUTTI_DEVICE PrimsVerbs(const Crew& crew, const RecvConn* recv, const SendConn* send, const Op& op, bool streaming)
      : PrimsVerbs(crew, Peers{{recv}, {send}}, op, streaming) {}

  /// in -> peer
  TUTTI_DEVICE void send(const T* in, std::uint64_t n) { steps<Verb<true, false, true, false, false>>(in, nullptr, n); }
  /// in -> peer, out
  TUTTI_DEVICE void copySend(const T* in, T* out, std::uint64_t n) {
    if (in == out) return send(in, n);
    steps<Verb<true, false, true, true, false>>(in, out, n);
  }
  /// peer -> out
  TUTTI_DEVICE void recv(T* out, std::uint64_t n) { steps<Verb<false, true, false, true, false>>(nullptr, out, n); }
  /// peer -> out, next peers
  TUTTI_DEVICE void recvCopySend(T* out, std::uint64_t n) {
    steps<Verb<false, true, true, true, false>>(nullptr, out, n);
  }
  /// in + peers -> next peer
  TUTTI_DEVICE void recvReduceSend(const T* in, std::uint64_t n) {
    steps<Verb<true, true, true, false, false>>(in, nullptr, n);
  }
  /// in + peers = complete result -> out
  TUTTI_DEVICE void recvReduceCopy(const T* in, T* out, std::uint64_t n) {
    steps<Verb<true, true, false, true, true>>(in, out, n);
  }
  /// in + peers = complete result -> out, next peers
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
  TUTTI_DEVICE void sendEmpty() { step<Verb<true, false, true, false, false>>(nullptr, nullptr, 0); }
  TUTTI_DEVICE void recvEmpty() { step<Verb<false, true, false, true, false>>(nullptr, nullptr, 0); }

 protected:
  static constexpr int kRecvs = FanOf::kRecvs;
  static constexpr int kSends = FanOf::kSends;
  static constexpr bool kSingle = kRecvs == 1 && kSends == 1;
  static constexpr bool kShares = FanOf::kShares && kProtocol == Protocol::Simple;
  using SendFifo = FifoView<Direction::Send, kProtocol, kSingle, kShares>;
  using RecvFifo = FifoView<Direction::Recv, kProtocol, kSingle, kShares>;

  TUTTI_DEVICE void sync() const { crew_.thread.syncGroup(crew_.barrier, crew_.group); }

  // A verb that receives has a connection to receive from; how many, only matters where there may be several.
  template <class F>
  TUTTI_DEVICE void forRecvs(F f) {
    TUTTI_UNROLL
    for (int k = 0; k < kRecvs; ++k) {
      if (kRecvs == 1 || k < nRecvs_) f(recv_[k], k);
    }
  }
  template <class F>
  TUTTI_DEVICE void forSends(F f) {
    TUTTI_UNROLL
    for (int k = 0; k < kSends; ++k) {
      if (kSends == 1 || k < nSends_) f(send_[k], k);
    }
  }

  /// Stores where the next kernel resumes on all connections. For every thread.
  TUTTI_DEVICE void saveFifos() {
    if (crew_.group.rank != 0) return;
    if (nRecvs_ > 0) forRecvs([&](RecvFifo& fifo, int) { fifo.save(crew_.thread); });
    if (nSends_ > 0) forSends([&](SendFifo& fifo, int) { fifo.save(crew_.thread); });
  }

  template <class V>
  TUTTI_DEVICE void steps(const T* in, T* out, std::uint64_t n) {
    const bool bySend = V::send && (!V::recv || nSends_ > 0);
    const std::uint64_t most = Prims::payloadOf(bySend ? send_[0].slotBytes() : recv_[0].slotBytes()) / sizeof(T);
    for (std::uint64_t done = 0; done < n; done += most) {
      step<V>(V::own ? in + done : nullptr, V::out ? out + done : nullptr, smaller(most, n - done));
    }
  }

  Crew crew_;
  Op op_;
  bool streaming_;
  bool alive_ = true;  ///< this thread has not seen an abort
  int nRecvs_ = 0;
  int nSends_ = 0;
  RecvFifo recv_[kRecvs];
  SendFifo send_[kSends];

 private:
  template <class V>
  TUTTI_DEVICE void step(const T* in, T* out, std::uint64_t n) {
    static_cast<Prims*>(this)->template oneStep<V>(in, out, n);
  }
};

}  // namespace tutti::device
