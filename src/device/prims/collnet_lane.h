// A head's lane to a network that reduces by itself, one direction of it: which slot is next, wait for it, hand it
// over. The other side is the host thread that issues the network's calls.
//
//   towards the network                        from the network
//   waits    sendHead + kSteps > step          waits    recvTail > step
//   fills    its share of the send slot        reads    its share of the receive slot
//   says     what the call is (lane 0)
//   posts    sendTail = ++step                 posts    recvHead = ++step
#pragma once

#include "device/collnet_view.h"
#include "device/direction.h"
#include "device/simt/simt.h"
#include "device/work.h"

namespace tutti::device {

/// Towards the network (Send) or from it. Every thread of a crew has its own.
template <Direction kDirection>
class CollNetLane {
 public:
  /// Resumes where the last kernel stopped. `chunkBytes`: of the work. `conn` must stay.
  TUTTI_DEVICE CollNetLane(simt::Thread t, const CollNetConn& conn, std::uint32_t chunkBytes)
      : conn_(&conn),
        offset_(std::uint64_t{conn.lane} * chunkBytes),
        step_(t.loadRelaxedSys(&(kSends ? conn.sendStep : conn.recvStep)->value)) {}

  /// This lane's share of the step's slot.
  TUTTI_DEVICE std::byte* slot() const {
    return (kSends ? conn_->sendSlots : conn_->recvSlots) + step_ % kSteps * conn_->areaBytes + offset_;
  }

  /// Waits until the slot is ours. false: aborted. For any one thread.
  TUTTI_DEVICE bool wait(simt::Thread t, const std::uint32_t* abortWord) const {
    const std::uint64_t* counter = &(kSends ? conn_->sendHead : conn_->recvTail)->value;
    return simt::spinUntil(t, abortWord, [&] {
      const std::uint64_t seen = t.loadAcquireSys(counter);
      return kSends ? step_ - seen < kSteps : seen - step_ - 1 < kSteps;
    });
  }

  /// Towards the network, before post(), when the slot is ours: what the step is to all lanes together. Others than
  /// lane 0 have nothing to say. For the thread that posts.
  TUTTI_DEVICE void tell(simt::Thread t, const CollNetStep& step) const {
    if (conn_->lane != 0) return;
    CollNetWords& words = *conn_->words;
    t.storeRelaxedSys(words.call.of(step_), step.call);
    t.storeRelaxedSys(words.begin.of(step_), step.begin);
    t.storeRelaxedSys(words.bytes.of(step_), step.bytes);
    t.storeRelaxedSys(words.perNode.of(step_), step.perNode);
    t.storeRelaxedSys(words.sendFrom.of(step_), step.sendFrom);
    t.storeRelaxedSys(words.recvTo.of(step_), step.recvTo);
  }

  /// Hands the slot over. For one thread, when all threads of the crew are done with it.
  TUTTI_DEVICE void post(simt::Thread t) const {
    t.storeReleaseSys(&(kSends ? conn_->sendTail : conn_->recvHead)->value, step_ + 1);
  }

  /// Goes to the next slot. For every thread.
  TUTTI_DEVICE void advance() { ++step_; }

  /// Stores where the next kernel resumes. For one thread, at the end; a barrier follows.
  TUTTI_DEVICE void save(simt::Thread t) const {
    t.storeRelaxedSys(&(kSends ? conn_->sendStep : conn_->recvStep)->value, step_);
  }

 private:
  static constexpr bool kSends = kDirection == Direction::Send;

  const CollNetConn* conn_;
  std::uint64_t offset_;
  std::uint64_t step_;
};

}  // namespace tutti::device
