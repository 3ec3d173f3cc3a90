// Carrying out a group: jobs, then operations, then ends. See group_work.h.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "base/log.h"
#include "base/thread.h"
#include "comm/background.h"
#include "comm/communicator.h"
#include "comm/execute.h"
#include "comm/group_work.h"

namespace tutti {

namespace {

/// The error to return for several at once: the first in time that is no mere echo of another rank's.
class FirstError {
 public:
  void note(Status why) {
    const std::lock_guard lock(mutex_);
    const bool echo = first_.code() == ncclRemoteError && why.code() != ncclRemoteError;
    if (first_.ok() || echo) first_ = why;
  }
  Status get() const { return first_; }

 private:
  std::mutex mutex_;
  Status first_;
};

/// Runs the bodies at once, each on a thread of its own, a single one on the caller's. `onError` hears of each error as
/// it happens, on the thread where it happens, also of bodies for which no thread was left.
Status runTogether(const std::vector<std::function<Status()>>& bodies,
                   const std::function<void(std::size_t, Status)>& onError) {
  FirstError error;
  const auto report = [&](std::size_t i, Status status) {
    if (status.ok()) return;
    error.note(status);
    onError(i, status);
  };
  if (bodies.size() == 1) {
    report(0, runGuarded(bodies[0]));
    return error.get();
  }
  std::vector<Thread> threads;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    auto thread = Thread::start("ncclCommInit", [&, i] { report(i, runGuarded(bodies[i])); });
    if (thread.ok()) {
      threads.push_back(std::move(thread).value());
    } else {
      report(i, thread.status());
    }
  }
  threads.clear();   // joins
  return error.get();
}

/// Runs the group's jobs of one kind, and takes them out of it.
Status runJobs(GroupWork& work, JobKind kind) {
  std::vector<std::function<Status()>> bodies;
  std::vector<ncclComm*> comms;
  for (Job& job : work.jobs) {
    if (job.kind != kind) continue;
    bodies.push_back(std::move(job.body));
    comms.push_back(job.comm);
  }
  std::erase_if(work.jobs, [kind](const Job& job) { return job.kind == kind; });
  if (bodies.empty()) return {};
  const Status status = runTogether(bodies, [&](std::size_t failed, Status why) {
    if (kind == JobKind::End) return;   // the others' ends do not depend on this one
    for (std::size_t i = 0; i < comms.size(); ++i) {
      // An init that failed has said so itself, unless it threw or there was no thread to run it on.
      if (i != failed || kind == JobKind::Init) comms[i]->abort.raise(why, lastErrorText());
    }
  });
  if (kind != JobKind::Init) return status;
  // Also where there was no thread to run it on.
  for (ncclComm* comm : comms) comm->progress.starting.store(false, std::memory_order_release);
  return status;
}

/// A group was not, or not as a whole, launched: peers would wait for ever.
void failAll(const std::vector<PlannedComm>& planned, Status why, bool anyLaunched) {
  // A caller's mistake is reported and forgotten where nothing has come of it; else ranks are in different states.
  if (concernsAllRanks(why) && !anyLaunched) return;
  for (const PlannedComm& one : planned) failComm(*one.comm, why);
}

Status connectAll(const std::vector<PlannedComm>& planned) {
  std::vector<std::function<Status()>> bodies;
  std::vector<ncclComm*> comms;
  for (const PlannedComm& one : planned) {
    if (missingLinks(one).empty()) continue;
    bodies.push_back([&one] { return connectMissing(one); });
    comms.push_back(one.comm);
  }
  if (bodies.empty()) return {};
  // Each on its own thread: one thread may drive both ends of a connection.
  return runTogether(bodies, [&](std::size_t, Status why) {
    for (ncclComm* comm : comms) comm->abort.raise(why, lastErrorText());
  });
}

/// Connects whatever is missing anywhere before the first launch, and launches everywhere before anything could wait.
Status execute(std::vector<PlannedComm>& planned) {
  Status status = connectAll(planned);
  for (PlannedComm& one : planned) {
    if (status.ok()) status = loadKernels(one);
  }
  bool anyLaunched = false;
  for (const PlannedComm& one : planned) {
    if (!status.ok()) break;
    status = one.comm->abort.status();
    if (status.ok()) status = launchPlanned(one);
    anyLaunched = anyLaunched || (status.ok() && !one.plan.launches.empty());
  }
  if (!status.ok()) failAll(planned, status, anyLaunched);
  return status;
}

}  // namespace

Status endAll(GroupWork& work, Status soFar) {
  GroupWork ends;
  for (Job& job : work.jobs) {
    if (job.kind == JobKind::End) ends.jobs.push_back(std::move(job));
  }
  std::erase_if(work.jobs, [](const Job& job) { return job.kind == JobKind::End; });
  // First: what it touches may be about to end.
  if (!soFar.ok()) dropWork(work, soFar);
  const Status ended = runJobs(ends, JobKind::End);
  return soFar.ok() ? ended : soFar;
}

namespace {

Status runAll(GroupWork& work, std::vector<PlannedComm>& planned) {
  Status status = runJobs(work, JobKind::Init);
  if (status.ok()) status = execute(planned);
  planned.clear();   // an abort, perhaps the group's own, waits until nobody is inside
  if (status.ok()) status = runJobs(work, JobKind::Finalize);
  return endAll(work, status);
}

Result<std::vector<PlannedComm>> planAll(const GroupWork& work) {
  std::vector<PlannedComm> planned;
  for (const CommOps& one : work.ops) {
    ASSIGN(PlannedComm plan, planComm(*one.comm, one.ops));
    planned.push_back(std::move(plan));
  }
  return planned;
}

/// Hands the group to a thread; the communicators show ncclInProgress until it is done.
Result<Progress> runInBackground(std::shared_ptr<GroupWork> work, std::shared_ptr<std::vector<PlannedComm>> planned) {
  std::vector<ncclComm*> comms;
  for (const Job& job : work->jobs) comms.push_back(job.comm);
  for (const PlannedComm& one : *planned) comms.push_back(one.comm);
  // Shown before it begins: whoever aborts or asks meanwhile must find it.
  const std::shared_ptr<BackgroundTask> task = BackgroundTask::idle();
  for (ncclComm* comm : comms) {
    const std::lock_guard lock(comm->progress.mutex);
    comm->progress.task = task;
  }
  const Status started = task->run([work, planned, comms] {
    const Status status = runAll(*work, *planned);
    if (status.ok()) return status;
    for (ncclComm* comm : comms) comm->abort.raise(status, lastErrorText());
    return status;
  });
  if (started.ok()) return Progress::Pending;
  for (ncclComm* comm : comms) comm->abort.raise(started, lastErrorText());
  dropWork(*work, started);
  return started;
}

}  // namespace

Result<Progress> runGroup(GroupWork work) {
  auto plans = planAll(work);
  if (!plans.ok()) return endAll(work, plans.status());
  std::vector<PlannedComm> planned = std::move(plans).value();
  const bool mayWait = !work.jobs.empty() || std::any_of(planned.begin(), planned.end(), [](const PlannedComm& one) {
    return !missingLinks(one).empty();
  });
  const bool nonBlocking = work.blocking.has_value() && !*work.blocking && !work.forceBlocking;
  if (nonBlocking && mayWait) {
    return runInBackground(std::make_shared<GroupWork>(std::move(work)),
                           std::make_shared<std::vector<PlannedComm>>(std::move(planned)));
  }
  TRY(runAll(work, planned));
  return Progress::Done;
}

}  // namespace tutti
