// Groups: calls between ncclGroupStart and the outermost ncclGroupEnd act as one. The state belongs to the thread.
#pragma once

#include "base/status.h"
#include "comm/state/progress.h"

struct ncclComm;

namespace tutti::comm {

class CallEvent;
class CommWork;
class GroupEvent;
struct GroupWork;
struct Op;

/// Opens a (nested) group on the calling thread. Never fails.
void groupStart();

/// Closes the innermost group. The outermost end runs what was collected: jobs first (init, finalize, destroy, each on
/// a thread of its own, a single one on the caller's), then connects peers, plans and launches. With a latched error
/// it runs nothing but destroy and abort, drops everything else and returns the last error. ncclInvalidUsage outside
/// a group.
Result<Progress> groupEnd();

/// As groupEnd, its jobs included, but operations are estimated instead of launched, and then forgotten; nothing is
/// connected for them. `microseconds` gets the estimate of the slowest communicator's share, -1 where there are none.
Result<Progress> groupSimulateEnd(float& microseconds);

/// Remembers an error of a call made inside an open group, so that the outermost end returns it. Does nothing outside
/// a group, and nothing for success. api/ calls it with the result of every call that may be grouped.
void latchGroupError(Status status);

/// Nesting depth of the calling thread; 0: no group is open.
int groupDepth();

/// The open group of the calling thread, null if there is none.
GroupWork* openGroup();

/// Into the open group; where there is none, the operation is a group of its own and carried out at once. Pending: the
/// communicator is non-blocking and works on it in the background. `event` stops before anything is carried out.
Result<Progress> addToGroup(ncclComm& comm, const Op& op, CallEvent& event);

/// What profilers are told of the calling thread's group, which is open or about to be.
GroupEvent& groupEvent();

/// Storage of the calling thread's for an operation that is carried out at once, whether a group is open or not.
CommWork& workAtOnce();

}  // namespace tutti::comm
