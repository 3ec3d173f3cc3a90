// Connections to many peers at once, as direct algorithms and PAT use them: per-peer state lies in shared memory, entry
// i of it is looked after by one thread (i modulo the threads of the group), so that waiting for n peers costs as long
// as the slowest of them and no thread needs arrays of its own.
//
//   acquire()   the owners wait for credits and for data, note the addresses of the slots, a barrier
//   …           all threads move
//   release()   a barrier, the owners hand slots over and go to the next
//   each()      all of it, for connections of one direction
//
// The order of slots on each connection is the order of these calls on both of its ends.
#pragma once

#include <type_traits>

#include "device/direction.h"
#include "device/policy.h"
#include "device/prims/block.h"
#include "device/prims/fifo_view.h"

namespace tutti::device {

/// State of every connection, by entry. What an entry stands for (a rank, a step of PAT) is up to the algorithm.
template <int kMost>
struct PeerStates {
  const SendConn* send[kMost];
  const RecvConn* recv[kMost];
  std::uint64_t sendStep[kMost];
  std::uint64_t recvStep[kMost];
  std::uint64_t headSeen[kMost];
  std::byte* to[kMost];          ///< the slot of the peer that is being filled
  const std::byte* from[kMost];  ///< our slot that the peer has filled, or what it offers instead
  const void* offered[kMost];    ///< what the peer is to read instead of the slot at `to`, or null
};
using PeerShared = PeerStates<kMaxDirectRanks>;

/// Shared memory of kernels that talk to many peers.
struct PeerKernelShared : KernelShared {
  PeerShared peers;
};

/// The part of a block's shared memory that only kernels declared with PeerKernelShared have.
TUTTI_DEVICE PeerShared& peersOf(const KernelBlock& block) {
  return static_cast<PeerKernelShared*>(block.shared)->peers;
}

/// Entries first..last-1.
struct Entries {
  int first;
  int last;
};

/// Bytes of entry i: one number for all entries, or a function of the entry.
template <class Bytes>
TUTTI_DEVICE std::uint64_t entryBytes(const Bytes& bytes, int i) {
  if constexpr (std::is_integral_v<Bytes>) {
    return bytes;
  } else {
    return bytes(i);
  }
}

template <int kMost>
class PeerFifosOf {
 public:
  static constexpr int kNone = -1;
  static constexpr Entries kNobody{0, 0};

  /// `skip`: the entry that stands for this rank, or kNone. Every thread of the group constructs its own.
  TUTTI_DEVICE PeerFifosOf(const Crew& crew, PeerStates<kMost>& shared, Protocol protocol, int skip)
      : crew_(crew), shared_(shared), protocol_(protocol), skip_(skip) {}

  /// Resumes where the last kernel stopped. Only entry i's owner has to call it, for all its entries.
  TUTTI_DEVICE void open(int i, const SendConn& send, const RecvConn& recv) {
    shared_.send[i] = &send;
    shared_.recv[i] = &recv;
    // Three loads in flight: on a GPU each takes about as long as a small message.
    const std::uint64_t sendStep = crew_.thread.loadRelaxedSys(send.stepOf(protocol_));
    const std::uint64_t recvStep = crew_.thread.loadRelaxedSys(recv.stepOf(protocol_));
    shared_.headSeen[i] = crew_.thread.loadCreditSys(send.headOf(protocol_));
    shared_.sendStep[i] = sendStep;
    shared_.recvStep[i] = recvStep;
    shared_.offered[i] = nullptr;
  }
  /// The same for an entry that is used in one direction only.
  TUTTI_DEVICE void openSend(int i, const SendConn& send) {
    shared_.send[i] = &send;
    const std::uint64_t sendStep = crew_.thread.loadRelaxedSys(send.stepOf(protocol_));
    shared_.headSeen[i] = crew_.thread.loadCreditSys(send.headOf(protocol_));
    shared_.sendStep[i] = sendStep;
    shared_.offered[i] = nullptr;
  }
  TUTTI_DEVICE void openRecv(int i, const RecvConn& recv) {
    shared_.recv[i] = &recv;
    shared_.recvStep[i] = crew_.thread.loadRelaxedSys(recv.stepOf(protocol_));
  }

  /// Calls f(i) for the entries that the calling thread looks after.
  template <class F>
  TUTTI_DEVICE void forOwned(Entries entries, F f) const {
    if (entries.first >= entries.last) return;
    const int size = static_cast<int>(crew_.group.size);
    int i = static_cast<int>(crew_.group.rank);
    if (i < entries.first) i += (entries.first - i + size - 1) / size * size;
    for (; i < entries.last; i += size) {
      if (i != skip_) f(i);
    }
  }

  /// A group of one thread hands over slot by slot, which lets its peers start earlier.
  TUTTI_DEVICE bool alone() const { return crew_.group.size == 1; }

  /// For the owner: entry i's next slot at the peer is free; its address is noted. false: aborted.
  TUTTI_DEVICE bool waitSend(int i) {
    const SendConn& conn = *shared_.send[i];
    const std::uint64_t step = shared_.sendStep[i];
    shared_.to[i] = conn.slots[static_cast<int>(protocol_)] + step % kSteps * slotBytes(conn);
    // A receiver of nothing does not wait for its sender where slots are validated by what is in them: it may be ahead.
    const auto free = [&] { return static_cast<std::int64_t>(step - shared_.headSeen[i]) < kSteps; };
    if (free()) return true;
    return simt::spinUntil(crew_.thread, crew_.abortWord, [&] {
      shared_.headSeen[i] = crew_.thread.loadCreditSys(conn.headOf(protocol_));
      return free();
    });
  }

  /// For the owner: notes the address of entry i's next slot, which may not be filled yet.
  TUTTI_DEVICE void locateRecv(int i) {
    const RecvConn& conn = *shared_.recv[i];
    shared_.from[i] = conn.slots[static_cast<int>(protocol_)] + shared_.recvStep[i] % kSteps * slotBytes(conn);
  }

  /// For the owner: entry i's next slot is filled; its address is noted. false: aborted. `bytes`: what is read of it,
  /// for a network; direct algorithms, which never use one, need not say.
  TUTTI_DEVICE bool waitRecv(int i, std::uint64_t bytes = 0) {
    locateRecv(i);
    expectSize(crew_.thread, *shared_.recv[i], shared_.recvStep[i], bytes);
    const std::uint64_t* tail = shared_.recv[i]->tailOf(protocol_);
    const std::uint64_t step = shared_.recvStep[i];
    const bool filled = simt::spinUntil(crew_.thread, crew_.abortWord,
                                        [&] { return crew_.thread.loadAcquireSys(tail) - step - 1 < kSteps; });
    if (filled) shared_.from[i] = contentOf(crew_.thread, *shared_.recv[i], step, shared_.from[i]);
    return filled;
  }

  /// Between waiting for entry i's slot at the peer and posting it, instead of filling it: `data` stays as it is until
  /// finish(). false: it has to be filled. Every thread calls it; all get the same answer. Simple protocol only.
  TUTTI_DEVICE bool offer(int i, const void* data, std::uint64_t bytes) {
    if (!simt::kPulls || !mayOffer(*shared_.send[i], crew_.registered, data, bytes)) return false;
    offered_ = true;
    if (i % static_cast<int>(crew_.group.size) == static_cast<int>(crew_.group.rank)) shared_.offered[i] = data;
    return true;
  }

  /// For the owner: the peer may read the slot; the next one comes. `bytes`: what is in it, for a network; direct
  /// algorithms, which never use one, need not say.
  TUTTI_DEVICE void postSend(int i, std::uint64_t bytes = 0) {
    if (alone()) simt::finishStreaming();
    tellSize(crew_.thread, *shared_.send[i], protocol_, shared_.sendStep[i], bytes);
    device::offer(crew_.thread, *shared_.send[i], shared_.sendStep[i], shared_.offered[i]);
    shared_.offered[i] = nullptr;
    crew_.thread.storeReleaseSys(shared_.send[i]->tailOf(protocol_), ++shared_.sendStep[i]);
  }
  /// For any thread that has read entry i's slot, before it posts anything that follows from it: see device::intact().
  TUTTI_DEVICE bool intact(int i) const { return device::intact(crew_.thread, *shared_.recv[i], crew_.abortWord); }
  /// For the owner: the peer may fill the slot again; the next one comes.
  TUTTI_DEVICE void postRecv(int i) {
    crew_.thread.storeCreditSys(shared_.recv[i]->headOf(protocol_), ++shared_.recvStep[i]);
  }

  /// For the owner, where slots are validated by what is in them: no tail.
  TUTTI_DEVICE void advanceSend(int i) { ++shared_.sendStep[i]; }

  TUTTI_DEVICE void sync() const { crew_.thread.syncGroup(crew_.barrier, crew_.group); }

  /// Tells the crew that the communicator was aborted.
  TUTTI_DEVICE void setAborted() const { crew_.thread.storeRelaxedSys(&crew_.shared->aborted, std::uint32_t{1}); }
  TUTTI_DEVICE bool alive() const { return crew_.thread.loadRelaxedSys(&crew_.shared->aborted) == 0; }

  /// Every thread: the slots of these entries are ours after it; false, for all threads, if aborted. `expected`: as for
  /// waitRecv(), see entryBytes().
  template <class Bytes = std::uint64_t>
  TUTTI_DEVICE bool acquire(Entries send, Entries recv, const Bytes& expected = {}) {
    bool fine = true;
    forOwned(send, [&](int i) { fine = fine && waitSend(i); });
    forOwned(recv, [&](int i) { fine = fine && waitRecv(i, entryBytes(expected, i)); });
    if (!fine) setAborted();
    sync();
    return alive();
  }

  /// Every thread: hands over what acquire() got, unless some of it had been withdrawn: then not alive() any more.
  /// `bytes`: as for postSend(), see entryBytes().
  template <class Bytes = std::uint64_t>
  TUTTI_DEVICE void release(Entries send, Entries recv, bool fine, const Bytes& bytes = {}) {
    if (!alone()) simt::finishStreaming();
    sync();
    if (!fine || !allIntact(recv)) return;
    forOwned(recv, [&](int i) { postRecv(i); });
    forOwned(send, [&](int i) { postSend(i, entryBytes(bytes, i)); });
  }

  /// Every thread: one slot of each of these connections in one direction, to be filled or emptied by move(i). They are
  /// served from entry `first` on, going round; by a lone thread one by one, by several all at once. false, for all
  /// threads, if aborted. `bytes`: of each slot, see entryBytes().
  template <Direction kDirection, class Bytes, class Move>
  TUTTI_DEVICE bool each(Entries entries, int first, const Bytes& bytes, Move move) {
    constexpr bool kSends = kDirection == Direction::Send;
    const Entries sends = kSends ? entries : kNobody;
    const Entries recvs = kSends ? kNobody : entries;
    const int n = entries.last - entries.first;
    bool fine = alone() ? alive() : acquire(sends, recvs, bytes);
    for (int k = 0; k < n && fine; ++k) {
      const int i = first + k < entries.last ? first + k : first + k - n;
      if (i == skip_) continue;
      if (alone()) fine = kSends ? waitSend(i) : waitRecv(i, entryBytes(bytes, i));
      if (!fine) break;
      move(i);
      if (alone() && !kSends) fine = intact(i);
      if (!fine) break;
      if (alone() && kSends) postSend(i, entryBytes(bytes, i));
      if (alone() && !kSends) postRecv(i);
    }
    if (!alone()) release(sends, recvs, fine, bytes);
    if (alone() && !fine) setAborted();
    return fine;
  }

  /// Every thread: what was offered has been read; the counters are stored for whoever comes next.
  TUTTI_DEVICE void finish(Entries sends, Entries recvs) {
    bool fine = alive();
    forOwned(sends, [&](int i) {
      if (simt::kPulls && offered_) fine = drain(i, fine);
      crew_.thread.storeRelaxedSys(shared_.send[i]->stepOf(protocol_), shared_.sendStep[i]);
    });
    forOwned(recvs,
             [&](int i) { crew_.thread.storeRelaxedSys(shared_.recv[i]->stepOf(protocol_), shared_.recvStep[i]); });
    sync();
  }
  TUTTI_DEVICE void finish(Entries all) { finish(all, all); }

  TUTTI_DEVICE const Crew& crew() const { return crew_; }
  TUTTI_DEVICE PeerStates<kMost>& shared() const { return shared_; }
  TUTTI_DEVICE std::uint32_t slotBytes(const ConnFifos& conn) const {
    return conn.slotBytes[static_cast<int>(protocol_)];
  }

 private:
  /// After the barrier that follows the move, for every thread, of all that it may have read or that depends on it.
  TUTTI_DEVICE bool allIntact(Entries recv) const {
    bool fine = true;
    if constexpr (simt::kPulls) {
      for (int i = recv.first; i < recv.last && fine; ++i) {
        if (i != skip_) fine = intact(i);
      }
      if (!fine) setAborted();
    }
    return fine;
  }

  /// For the owner: entry i's peer has consumed all slots. false: aborted, before if not `alive`; what was offered is
  /// withdrawn.
  TUTTI_DEVICE bool drain(int i, bool alive) {
    const std::uint64_t* head = shared_.send[i]->headOf(protocol_);
    const auto consumed = [&] { return crew_.thread.loadAcquireSys(head) == shared_.sendStep[i]; };
    if (alive && simt::spinUntil(crew_.thread, crew_.abortWord, consumed)) return true;
    withdraw(crew_.thread, *shared_.send[i]);
    return false;
  }

  Crew crew_;
  PeerStates<kMost>& shared_;
  Protocol protocol_;
  int skip_;
  bool offered_ = false;  ///< peers read what the caller may change after the work
};
using PeerFifos = PeerFifosOf<kMaxDirectRanks>;

}  // namespace tutti::device
