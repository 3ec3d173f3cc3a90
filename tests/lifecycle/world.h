// The communicators of a random life as every rank knows them, and what is done to them, as plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nccl.h"

namespace lifecycle {

inline constexpr int kLanes = 2;  ///< threads of a rank that drive communicators

enum class State { Alive, Finalized, Revoked, Suspended };

struct Comm {
  int id = 0;
  std::vector<int> members;  ///< ranks of the job; the place is the rank in the communicator
  bool blocking = true;
  bool splitShare = false;
  bool shrinkShare = false;
  int family = 0;       ///< communicators that share resources have the same
  int depth = 0;        ///< how many ancestors it has
  int lane = 0;         ///< which thread of each rank drives it; the same for a family
  bool worked = false;  ///< operations of it have been called
  State state = State::Alive;

  int size() const { return static_cast<int>(members.size()); }
  /// The rank in it of a rank of the job, or -1.
  int rankOf(int jobRank) const;
};

enum class OpKind { AllReduce, Reduce, ReduceScatter, AllGather, Broadcast, Ring, AlltoAll, Gather, Scatter };

struct Op {
  OpKind kind = OpKind::AllReduce;
  std::size_t count = 1;  ///< elements of one rank's part
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  long number = 0;
  bool patient = false;  ///< its result is looked at later
};

enum class Kind {
  Init,
  Split,
  Shrink,
  ShrinkAbort,
  Grow,
  Revoke,
  Finalize,
  Destroy,
  Abort,
  Work,
  Record,
  Replay,
  Drop,
  Suspend,
  Resume,
  Register,
  Deregister,
  Wrong,
};
inline constexpr int kKinds = static_cast<int>(Kind::Wrong) + 1;

const char* nameOf(Kind kind);

/// What is passed for a new communicator.
struct Wish {
  bool given = false;  ///< else a null configuration
  bool blocking = true;
  bool splitShare = false;
  bool shrinkShare = false;
};

/// One thing that members of a communicator do.
struct Deed {
  Kind kind = Kind::Work;
  long number = 0;          ///< counts all deeds of the job
  Comm comm;                ///< as it was before; of Init the new one
  Wish wish;                ///< of Init, Split, Shrink, Grow
  std::vector<Comm> born;   ///< of Split one per color, of Shrink and Grow the one
  std::vector<int> colors;  ///< of Split, by rank
  std::vector<int> keys;
  std::vector<int> excluded;  ///< of Shrink, ranks of the communicator in any order
  std::vector<Comm> doomed;   ///< of Abort: the whole family, in which comm is; of Revoke, ShrinkAbort: its relatives
  Op op;                      ///< of Work, Record
  int recording = 0;          ///< of Record, Replay, Drop; of Register whose buffer, or -1
  int registration = 0;       ///< of Register, Deregister
  bool stuck = false;         ///< of Abort, Revoke, ShrinkAbort: in the middle of an operation that never ends
  int who = 0;                ///< of Wrong: the rank of the job; of Grow the rank that makes the id
  int which = 0;              ///< of Wrong: which wrong call; of Register: which buffer, and who; a random number
  bool related = false;       ///< of Wrong: `who` has others of its family
  int other = -1;             ///< of Wrong: a communicator of `who` that is blocking where this is not

  /// Everybody who has something to do in it.
  std::vector<int> participants() const;
};

/// Deeds in each thread of a rank; a rank goes on when both are done.
struct Step {
  long number = 0;
  std::vector<Deed> lanes[kLanes];
  bool grouped = false;  ///< all deeds of the lane in one group
};

std::string describe(const Deed& deed);

}  // namespace lifecycle
