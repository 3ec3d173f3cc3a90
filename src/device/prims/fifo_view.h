// One end of a connection's FIFO in a kernel: which slot is next, wait for it, hand it over.
//
//   sender                                   receiver
//   waits    head + kSteps > step            waits    tail > step
//   writes   slot step % kSteps              reads    slot step % kSteps
//   posts    tail = ++step  (release.sys)    posts    head = ++step  (a credit: orders what was read)
//
// The counters only grow; differences are taken modulo 2^64, so a wrap-around changes nothing. Every thread of the
// group keeps its own copy of `step`. Protocols whose data carry flags have no tail: their receivers never call wait().
#pragma once

#include "device/direction.h"
#include "device/simt/simt.h"
#include "device/work.h"

namespace tutti::device {

/// Whether `bytes` at `data` are at least `least`, and lie where others than kernels of this device get at them.
TUTTI_DEVICE bool inWindow(const MemoryRange& window, std::uint32_t least, const void* data, std::uint64_t bytes) {
  const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(data) - window.base;
  return bytes > 0 && bytes >= least && begin < window.bytes && window.bytes - begin >= bytes;
}

/// Whether a sender may offer `bytes` of its memory at `data` instead of filling a slot with them. `registered`: the
/// work's buffers are.
TUTTI_DEVICE bool mayOffer(const SendConn& conn, bool registered, const void* data, std::uint64_t bytes) {
  if constexpr (!simt::kPulls) return false;
  if (conn.pull.addresses == nullptr || (conn.pull.registeredOnly != 0 && !registered)) return false;
  return inWindow(conn.pull.window, conn.pull.least, data, bytes);
}

/// Whether a receiver may ask the network to put `bytes` into its memory at `data` instead of a shared slot.
TUTTI_DEVICE bool mayAskInto(const RecvConn& conn, const void* data, std::uint64_t bytes) {
  if constexpr (!simt::kPulls) return false;
  return conn.shared.taken != nullptr && inWindow(conn.shared.window, conn.shared.least, data, bytes);
}

/// For a sender to which the slot of `step` belongs: how much of it is content. Who sends it over a network wants to
/// know; by the Simple protocol when the tail is posted, else some time in this step.
TUTTI_DEVICE void tellSize(simt::Thread t, const SendConn& conn, Protocol protocol, std::uint64_t step,
                           std::uint64_t bytes) {
  if (conn.words == nullptr) return;
  SlotWords& sizes = conn.words->size[static_cast<int>(protocol)];
  t.storeRelaxedSys(sizes.of(step), sizeWord(step, static_cast<std::uint32_t>(bytes)));
}

/// For a receiver by the Simple protocol, before it waits for the slot of `step`: how much of it is read. Who receives
/// it from a network compares that with what has come.
TUTTI_DEVICE void expectSize(simt::Thread t, const RecvConn& conn, std::uint64_t step, std::uint64_t bytes) {
  if (conn.words == nullptr) return;
  t.storeRelaxedSys(conn.words->expected.of(step), sizeWord(step, static_cast<std::uint32_t>(bytes)));
}

/// For a sender, before it posts the slot of `step`: where its content lies; null: in the slot.
TUTTI_DEVICE void offer(simt::Thread t, const SendConn& conn, std::uint64_t step, const void* data) {
  if constexpr (simt::kPulls) {
    if (conn.pull.addresses == nullptr) return;
    t.storeRelaxedSys(conn.pull.addresses->of(step), std::uint64_t{reinterpret_cast<std::uintptr_t>(data)});
  }
}

/// For a receiver that has waited for `step`: where the content of its slot lies.
TUTTI_DEVICE const std::byte* contentOf(simt::Thread t, const RecvConn& conn, std::uint64_t step,
                                        const std::byte* slot) {
  if constexpr (simt::kPulls) {
    if (conn.pull.addresses == nullptr) return slot;
    const std::uint64_t data = t.loadRelaxedSys(conn.pull.addresses->of(step));
    if (data != 0) return reinterpret_cast<const std::byte*>(data + static_cast<std::uint64_t>(conn.pull.shift));
  }
  return slot;
}

/// For a sender that leaves, after an abort, without having seen that its offers were consumed: from now on their
/// memory is the application's again.
TUTTI_DEVICE void withdraw(simt::Thread t, const SendConn& conn) {
  if constexpr (simt::kPulls) {
    if (conn.pull.addresses != nullptr) t.storeReleaseSys(conn.pull.addresses->ofAll(), std::uint64_t{1});
  }
}

/// For a receiver that has read the content of a slot, before it posts anything that follows from it: false, when it
/// was aborted, if the sender has withdrawn its offers and what was read may be anything. Who withdraws was aborted,
/// and says so to all ranks: this one will be aborted as well.
TUTTI_DEVICE bool intact(simt::Thread t, const RecvConn& conn, const std::uint32_t* abortWord) {
  if constexpr (simt::kPulls) {
    if (conn.pull.addresses == nullptr) return true;
    simt::orderReads();
    if (t.loadRelaxedSys(conn.pull.addresses->ofAll()) == 0) return true;
    return simt::spinUntil(t, abortWord, [] { return false; });
  }
  return true;
}

/// The end of a connection that is used in this direction.
template <Direction kDirection>
using ConnOf = std::conditional_t<kDirection == Direction::Send, SendConn, RecvConn>;

/// Which slots come next where connections may share them; numbers modulo 2^32. With slots of its own a connection's
/// numbers are its steps.
struct SharedPlace {
  std::uint32_t taken_ = 0;
  std::uint32_t given_ = 0;  ///< what was seen of SendShared::givenBack
  std::uint32_t mask_ = 0;

  SharedPlace() = default;
  /// `shared`: SendShared or RecvShared.
  template <class Shared>
  TUTTI_DEVICE SharedPlace(simt::Thread t, const Shared& shared, std::uint64_t step)
      : taken_(static_cast<std::uint32_t>(shared.taken == nullptr ? step : t.loadRelaxedSys(shared.taken))),
        mask_((shared.taken == nullptr ? kSteps : shared.count) - 1) {
    given_ = taken_ - mask_ - 1;
  }
};
struct NoSharedPlace {};

/// `kRemembers`: whether the slots' address and size stay in registers; crews with many connections have none to spare.
/// `kShares`: the connection may share its slots with others. The place is a base, for even an empty member costs nvcc
/// registers.
template <Direction kDirection, Protocol kProtocol, bool kRemembers = true, bool kShares = false>
class FifoView : private std::conditional_t<kShares, SharedPlace, NoSharedPlace> {
 public:
  using Conn = ConnOf<kDirection>;

  /// An end that is not used.
  FifoView() = default;

  /// Resumes where the last kernel stopped. Every thread of the group constructs its own. `conn` must stay.
  TUTTI_DEVICE FifoView(simt::Thread t, const Conn& conn)
      : conn_(&conn),
        slots_(conn.slots[kIndex]),
        slotBytes_(conn.slotBytes[kIndex]),
        step_(t.loadRelaxedSys(conn.stepOf(kProtocol))),
        seen_(kSends ? step_ - kSteps : step_) {
    if constexpr (kShares) static_cast<SharedPlace&>(*this) = SharedPlace(t, conn.shared, step_);
  }

  TUTTI_DEVICE std::uint32_t slotBytes() const { return kRemembers ? slotBytes_ : conn_->slotBytes[kIndex]; }
  TUTTI_DEVICE std::uint64_t step() const { return step_; }
  TUTTI_DEVICE std::byte* slot() const {
    return (kRemembers ? slots_ : conn_->slots[kIndex]) + slotIndex() * slotBytes();
  }

  /// Waits until the slot is ours: free for a sender, filled for a receiver. false: aborted. For any one thread.
  TUTTI_DEVICE bool wait(simt::Thread t, const std::uint32_t* abortWord) {
    if (ready()) return true;
    const std::uint64_t* counter = peerCounter();
    return simt::spinUntil(t, abortWord, [&] {
      seen_ = look(t, counter);
      return ready();
    });
  }

  /// The same for a warp whose threads all wait, and all leave with the same answer.
  TUTTI_DEVICE bool waitWarp(simt::Thread t, const std::uint32_t* abortWord) {
    if (!t.any(!ready())) return true;
    const std::uint64_t* counter = peerCounter();
    return simt::spinWarpUntil(t, abortWord, [&] {
      seen_ = look(t, counter);
      return !t.any(!ready());
    });
  }

  /// For a sender that fills the slot, after wait(): waits until it was given back by whichever connection had it last.
  /// false: aborted. For any one thread.
  TUTTI_DEVICE bool waitShared(simt::Thread t, const std::uint32_t* abortWord) {
    if constexpr (kShares) {
      const auto free = [&] { return this->taken_ - this->given_ <= this->mask_; };
      if (conn_->shared.taken == nullptr || free()) return true;
      return simt::spinUntil(t, abortWord, [&] {
        this->given_ = static_cast<std::uint32_t>(t.loadCreditSys(conn_->shared.givenBack));
        return free();
      });
    }
    return true;
  }

  /// Hands the slot to the peer. For one thread, when all threads of the group are done with the slot. A sender says
  /// how many `bytes` it has put there; `offered`: what the receiver is to read instead of it, or null.
  TUTTI_DEVICE void post(simt::Thread t, std::uint64_t bytes = 0, const void* offered = nullptr) const {
    if constexpr (kSends && kProtocol == Protocol::Simple) {
      tell(t, bytes);
      offer(t, *conn_, step_, offered);
      if constexpr (kShares) {
        if (conn_->shared.taken != nullptr)
          t.storeRelaxedSys(conn_->words->place.of(step_), std::uint64_t{this->taken_});
      }
    }
    if constexpr (kSends) {
      t.storeReleaseSys(conn_->tailOf(kProtocol), step_ + 1);
    } else {
      t.storeCreditSys(conn_->headOf(kProtocol), step_ + 1);
    }
  }

  /// For a sender that does not post, when it has waited: the content of the slot. For one thread.
  TUTTI_DEVICE void tell(simt::Thread t, std::uint64_t bytes) const { tellSize(t, *conn_, kProtocol, step_, bytes); }

  /// For a receiver by the Simple protocol, before wait(): how much of the slot is read. For one thread. Of shared
  /// slots that was said when they were asked for.
  TUTTI_DEVICE void expect(simt::Thread t, std::uint64_t bytes) const {
    if (kShares && conn_->shared.taken != nullptr) return;
    expectSize(t, *conn_, step_, bytes);
  }

  /// For a sender: whether it may post() this instead of filling the slot. The same for all threads.
  TUTTI_DEVICE bool mayOffer(bool registered, const void* data, std::uint64_t bytes) const {
    return device::mayOffer(*conn_, registered, data, bytes);
  }
  /// For a receiver: whether it has asked for this (see mayAskInto). The same for all threads.
  TUTTI_DEVICE bool askedInto(const void* data, std::uint64_t bytes) const { return mayAskInto(*conn_, data, bytes); }
  /// For a receiver: where it has asked the network to put the content of the step; null: into a slot, or it did not
  /// ask.
  TUTTI_DEVICE const std::byte* destination(simt::Thread t) const {
    if constexpr (kShares && simt::kPulls) {
      if (conn_->shared.taken == nullptr || conn_->shared.window.bytes == 0) return nullptr;
      return reinterpret_cast<const std::byte*>(t.loadRelaxedSys(conn_->words->into.of(step_)));
    }
    return nullptr;
  }
  /// For a receiver, after wait(): the content of the step.
  TUTTI_DEVICE const std::byte* content(simt::Thread t) const {
    if (const std::byte* const place = destination(t)) return place;
    return contentOf(t, *conn_, step_, slot());
  }

  /// For a sender that has offered memory: waits until everything was consumed. Unless it is `alive`, or is aborted
  /// meanwhile: withdraws it. For any one thread.
  TUTTI_DEVICE void drain(simt::Thread t, const std::uint32_t* abortWord, bool alive) {
    if (alive) {
      const auto consumed = [&] { return t.loadAcquireSys(conn_->headOf(kProtocol)) == step_; };
      if (simt::spinUntil(t, abortWord, consumed)) return;
    }
    withdraw(t, *conn_);
  }
  /// For a receiver: see device::intact(). For any thread.
  TUTTI_DEVICE bool intact(simt::Thread t, const std::uint32_t* abortWord) const {
    return device::intact(t, *conn_, abortWord);
  }

  /// Goes to the next slot. For every thread.
  TUTTI_DEVICE void advance() {
    ++step_;
    if constexpr (kShares) ++this->taken_;
  }
  /// The same for a step whose content lies in the user's memory: a shared slot stays where it is, for the next one.
  TUTTI_DEVICE void advanceInPlace() {
    ++step_;
    if constexpr (kShares) this->taken_ += conn_->shared.taken == nullptr ? 1 : 0;
  }
  /// For a receiver: one or the other.
  TUTTI_DEVICE void advanceReceived(simt::Thread t) { destination(t) != nullptr ? advanceInPlace() : advance(); }
  /// Shared slots taken so far, by all connections that share them, modulo 2^32.
  TUTTI_DEVICE std::uint32_t taken() const { return this->taken_; }

  /// Stores where the next kernel resumes. For one thread, at the end.
  TUTTI_DEVICE void save(simt::Thread t) const {
    t.storeRelaxedSys(conn_->stepOf(kProtocol), step_);
    if constexpr (kShares) {
      if (conn_->shared.taken != nullptr) t.storeRelaxedSys(conn_->shared.taken, std::uint64_t{this->taken_});
    }
  }

 private:
  static constexpr int kIndex = static_cast<int>(kProtocol);
  static constexpr bool kSends = kDirection == Direction::Send;

  TUTTI_DEVICE std::uint64_t slotIndex() const {
    if constexpr (kShares) {
      return this->taken_ & this->mask_;
    } else {
      return step_ % kSteps;
    }
  }
  TUTTI_DEVICE static std::uint64_t look(simt::Thread t, const std::uint64_t* counter) {
    return kSends ? t.loadCreditSys(counter) : t.loadAcquireSys(counter);
  }
  TUTTI_DEVICE const std::uint64_t* peerCounter() const {
    return kSends ? conn_->headOf(kProtocol) : conn_->tailOf(kProtocol);
  }
  // What was seen of the peer's counter stays true: it only grows. A receiver may even be past this step: where threads
  // wait for themselves, others may have sent all that there is in it.
  TUTTI_DEVICE bool ready() const {
    constexpr std::uint64_t kMostAhead = kShares ? kMostSharedSlots : kSteps;
    return kSends ? static_cast<std::int64_t>(step_ - seen_) < kSteps : seen_ - step_ - 1 < kMostAhead;
  }

  const Conn* conn_ = nullptr;
  std::byte* slots_ = nullptr;
  std::uint32_t slotBytes_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t seen_ = 0;  ///< at first: as if nothing had been seen
};

}  // namespace tutti::device
