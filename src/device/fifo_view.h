// One end of a connection's FIFO in a kernel: which slot is next, wait for it, hand it over.
//
//   sender                                   receiver
//   waits    head + kSteps > step            waits    tail > step
//   writes   slot step % kSteps              reads    slot step % kSteps
//   posts    tail = ++step  (release.sys)    posts    head = ++step  (release.sys)
//
// The counters only grow; differences are taken modulo 2^64, so a wrap-around changes nothing. Every thread of the
// group keeps its own copy of `step`; one thread waits and posts, barriers around it extend that to the group.
#pragma once

#include "device/simt.h"
#include "device/work.h"

namespace tutti::device {

enum class Direction { Send, Recv };

template <Direction kDirection>
class FifoView {
 public:
  /// An end that is not used.
  FifoView() = default;

  /// Resumes where the last kernel stopped. Every thread of the group constructs its own.
  TUTTI_DEVICE FifoView(simt::Thread t, const ConnView& conn, Protocol protocol)
      : slots_(conn.slots[static_cast<int>(protocol)]),
        slotBytes_(conn.slotBytes[static_cast<int>(protocol)]),
        tail_(conn.tailOf(protocol)),
        head_(conn.headOf(protocol)),
        savedStep_(conn.stepOf(protocol)),
        step_(t.loadRelaxedSys(savedStep_)) {}

  TUTTI_DEVICE std::uint32_t slotBytes() const { return slotBytes_; }

  TUTTI_DEVICE std::byte* slot() const { return slots_ + (step_ % kSteps) * slotBytes_; }

  /// Waits until the slot is ours: free for a sender, filled for a receiver. false: aborted. For the waiting thread.
  TUTTI_DEVICE bool wait(simt::Thread t, const std::uint32_t* abortWord) {
    if (ready()) return true;
    const std::uint64_t* counter = kDirection == Direction::Send ? head_ : tail_;
    return simt::spinUntil(t, abortWord, [&] {
      seen_ = t.loadAcquireSys(counter);
      looked_ = true;
      return ready();
    });
  }

  /// Hands the slot to the peer. For the waiting thread, after a barrier of the group.
  TUTTI_DEVICE void post(simt::Thread t) const {
    t.storeReleaseSys(kDirection == Direction::Send ? tail_ : head_, step_ + 1);
  }

  /// Goes to the next slot. For every thread.
  TUTTI_DEVICE void advance() { ++step_; }

  /// Stores where the next kernel resumes. For one thread, at the end.
  TUTTI_DEVICE void save(simt::Thread t) const { t.storeRelaxedSys(savedStep_, step_); }

 private:
  // What was seen of the peer's counter stays true: it only grows.
  TUTTI_DEVICE bool ready() const {
    if (!looked_) return false;
    return kDirection == Direction::Send ? step_ - seen_ < kSteps : seen_ - step_ - 1 < kSteps;
  }

  std::byte* slots_ = nullptr;
  std::uint32_t slotBytes_ = 0;
  bool looked_ = false;
  std::uint64_t* tail_ = nullptr;
  std::uint64_t* head_ = nullptr;
  std::uint64_t* savedStep_ = nullptr;
  std::uint64_t step_ = 0;
  std::uint64_t seen_ = 0;
};

}  // namespace tutti::device
