#include "comm/enqueue/group.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "comm/enqueue/comm_work.h"
#include "comm/enqueue/estimate.h"
#include "comm/enqueue/events/call_events.h"
#include "comm/enqueue/run_group.h"

namespace tutti::comm {

namespace {

/// One per thread: the API makes it so.
struct ThreadGroup {
  int depth = 0;
  Status lastError;
  std::string errorText;  ///< of lastError
  GroupWork work;
  CommWork alone;  ///< storage for what is not collected
};

/// Made by the thread's first group and freed with the thread. What is called later than that, as a library's own end
/// may be, gets a new one.
ThreadGroup& threadGroup() {
  thread_local constinit ThreadGroup* group = nullptr;
  if (group == nullptr) {
    thread_local struct Owner {
      ~Owner() { delete std::exchange(group, nullptr); }
    } owner;
    static_cast<void>(owner);
    group = new ThreadGroup;
  }
  return *group;
}

/// What a group has collected, taken from the thread while it is carried out, so that it is a new group if somebody who
/// is called meanwhile opens one. Its storage goes back to the thread.
class TakenWork {
 public:
  explicit TakenWork(ThreadGroup& group) : group_(group), work_(std::move(group.work)) {}
  TakenWork(const TakenWork&) = delete;
  ~TakenWork() {
    work_.clear();
    if (group_.work.empty()) group_.work = std::move(work_);
  }
  GroupWork& operator*() { return work_; }
  GroupWork* operator->() { return &work_; }

 private:
  ThreadGroup& group_;
  GroupWork work_;
};

/// The error of a call inside the group, with its text: later calls may have succeeded, or warned of something else.
Status takeLatched(ThreadGroup& group) {
  restoreLastError(std::exchange(group.errorText, {}));
  return std::exchange(group.lastError, {});
}

Status notInGroup() {
  return fail(ncclInvalidUsage,
              "ncclGroupEnd: not in a group call. Every ncclGroupEnd needs an ncclGroupStart before it "
              "on the same thread");
}

}  // namespace

GroupWork* openGroup() {
  ThreadGroup& group = threadGroup();
  return group.depth > 0 ? &group.work : nullptr;
}

GroupEvent& groupEvent() {
  return threadGroup().work.event;
}

Result<Progress> addToGroup(ncclComm& comm, const Op& op, CallEvent& event) {
  ThreadGroup& group = threadGroup();
  if (group.depth > 0) {
    TRY(group.work.add(comm, op));
    return Progress::Done;
  }
  TakenWork work(group);
  TRY(work->add(comm, op));
  event.stop();
  work->event.endBegins();
  return runGroup(*work);
}

CommWork& workAtOnce() {
  return threadGroup().alone;
}

void groupStart() {
  ++threadGroup().depth;
}

int groupDepth() {
  return threadGroup().depth;
}

void latchGroupError(Status status) {
  ThreadGroup& group = threadGroup();
  if (group.depth == 0 || status.ok()) return;
  group.lastError = status;
  group.errorText = lastErrorText();
}

Result<Progress> groupEnd() {
  ThreadGroup& group = threadGroup();
  if (group.depth == 0) return notInGroup();
  if (--group.depth > 0) return Progress::Done;
  TakenWork work(group);
  work->event.endBegins();
  const Status latched = takeLatched(group);
  if (!latched.ok()) return endAll(*work, latched);
  if (work->empty()) return Progress::Done;
  return runGroup(*work);
}

Result<Progress> groupSimulateEnd(float& microseconds) {
  ThreadGroup& group = threadGroup();
  if (group.depth == 0) return notInGroup();
  if (--group.depth > 0) return Progress::Done;
  TakenWork work(group);
  work->event.endBegins();
  const Status latched = takeLatched(group);
  if (!latched.ok()) return endAll(*work, latched);
  // Before the jobs, some of which may end what is estimated.
  const Result<double> slowest = estimateMicroseconds(*work);
  if (!slowest.ok()) return endAll(*work, slowest.status());
  microseconds = static_cast<float>(slowest.value());
  work->leaveComms();
  if (work->empty()) return Progress::Done;
  return runGroup(*work);
}

}  // namespace tutti::comm
