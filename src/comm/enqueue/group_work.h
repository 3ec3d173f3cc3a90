// What a group collects between its start and its end. Inside comm/ only; the face is group.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/enqueue/events/call_events.h"

struct ncclComm;

namespace tutti::comm {

class CommWork;
class FamilyTurn;
struct Op;

/// Init, and the making of a child, come before the operations of a group, the rest after them; the last two also where
/// the group has failed.
enum class JobKind : std::uint8_t { Init, Child, Memory, Finalize, Revoke, End };

/// Host work on one communicator that may wait for other ranks. `body` of an End job destroys `comm`; that of a Child
/// makes another one out of it, and what comes of that is no failure of `comm`.
struct Job {
  ncclComm* comm = nullptr;
  JobKind kind = JobKind::Init;
  std::function<Status()> body;
};

/// Everything between a group's start and its end. Can be used again: its storage is kept.
struct GroupWork {
  std::vector<Job> jobs;
  std::optional<bool> blocking;  ///< kind of the communicators so far; unset: none yet
  bool forceBlocking = false;    ///< destroy and abort are always waited for
  GroupEvent event;              ///< until the operations are over

  GroupWork();
  GroupWork(GroupWork&& other) noexcept;
  /// Leaves `other` empty.
  GroupWork& operator=(GroupWork&& other) noexcept;
  ~GroupWork();

  /// Refuses (ncclInvalidArgument) a blocking and a non-blocking communicator in one group.
  Status admit(const ncclComm& comm);
  Status add(Job job);
  Status add(ncclComm& comm, const Op& op);
  bool collectsInitOf(const ncclComm& comm) const;
  bool empty() const { return jobs.empty() && nComms_ == 0; }

  /// Communicators with operations, in order of their first one.
  std::span<const std::unique_ptr<CommWork>> comms() const { return {pool_.data(), nComms_}; }
  /// For the operations of communicators that share connections: from here on they have a place among those of their
  /// relatives, which other threads may call.
  void takeTurns();
  /// Whether its turn in any family has yet to come.
  bool mustWaitForTurn() const;
  /// Waits until all have come, or a communicator of the group has failed.
  Status awaitTurns() const;
  /// The communicators may be freed: their operations are over, or given up.
  void leaveComms();
  /// Forgets everything.
  void clear();

 private:
  std::vector<std::unique_ptr<CommWork>> pool_;  ///< the first nComms_ are in use
  std::size_t nComms_ = 0;
  std::vector<FamilyTurn> turns_;
};

/// Gives up a group that cannot be carried out: an init that never ran must not look as if it still went on.
void dropWork(GroupWork& work, Status why);

}  // namespace tutti::comm
