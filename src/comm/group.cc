#include "comm/group.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "comm/communicator.h"
#include "comm/estimate.h"
#include "comm/group_work.h"

namespace tutti {

namespace {

/// One per thread: the API makes it so.
struct ThreadGroup {
  int depth = 0;
  Status lastError;
  GroupWork work;
};

ThreadGroup& threadGroup() {
  thread_local ThreadGroup group;
  return group;
}

Status notInGroup() {
  return fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call. Every ncclGroupEnd needs an ncclGroupStart before it "
              "on the same thread");
}

}  // namespace

void dropWork(GroupWork& work, Status why) {
  for (Job& job : work.jobs) {
    if (job.kind == JobKind::Finalize) job.comm->progress.finalized.store(false);
    if (job.kind != JobKind::Init) continue;
    job.comm->abort.raise(why, "the group that was to initialise the communicator failed");
    job.comm->progress.starting.store(false, std::memory_order_release);
  }
  work = GroupWork();
}

Status GroupWork::admit(const ncclComm& comm) {
  if (blocking.has_value() && *blocking != comm.config.blocking()) {
    return fail(ncclInvalidArgument, "Blocking and nonblocking communicators are not allowed in the same group");
  }
  blocking = comm.config.blocking();
  return {};
}

Status GroupWork::add(Job job) {
  if (job.kind == JobKind::End) {
    forceBlocking = true;
  } else {
    TRY(admit(*job.comm));
  }
  jobs.push_back(std::move(job));
  return {};
}

Status GroupWork::add(ncclComm& comm, const Op& op) {
  TRY(admit(comm));
  auto place = std::find_if(ops.begin(), ops.end(), [&](const CommOps& known) { return known.comm == &comm; });
  if (place == ops.end()) place = ops.insert(ops.end(), CommOps{&comm, {}});
  place->ops.push_back(op);
  return {};
}

GroupWork* openGroup() {
  ThreadGroup& group = threadGroup();
  return group.depth > 0 ? &group.work : nullptr;
}

void groupStart() { ++threadGroup().depth; }

int groupDepth() { return threadGroup().depth; }

void latchGroupError(Status status) {
  ThreadGroup& group = threadGroup();
  if (group.depth > 0 && !status.ok()) group.lastError = status;
}

Result<Progress> groupEnd() {
  ThreadGroup& group = threadGroup();
  if (group.depth == 0) return notInGroup();
  if (--group.depth > 0) return Progress::Done;
  GroupWork work = std::exchange(group.work, {});
  const Status latched = std::exchange(group.lastError, {});
  if (!latched.ok()) return endAll(work, latched);
  if (work.empty()) return Progress::Done;
  return runGroup(std::move(work));
}

Status groupSimulateEnd(float& microseconds) {
  ThreadGroup& group = threadGroup();
  if (group.depth == 0) return notInGroup();
  if (--group.depth > 0) return {};
  GroupWork work = std::exchange(group.work, {});
  const Status latched = std::exchange(group.lastError, {});
  if (!latched.ok()) return endAll(work, latched);
  // Communicators run side by side: the slowest decides.
  double slowest = -1;
  Status status;
  for (const CommOps& one : work.ops) {
    const Result<double> estimate = estimateMicroseconds(*one.comm, one.ops);
    if (!estimate.ok()) status = estimate.status();
    if (estimate.ok()) slowest = std::max(slowest, estimate.value());
  }
  endAll(work, Status(ncclInvalidUsage)).ignore();
  TRY(status);
  microseconds = static_cast<float>(slowest);
  return {};
}

}  // namespace tutti
