// Carrying out a group: jobs, then operations, then ends. See group_work.h.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/thread.h"
#include "comm/communicator.h"
#include "comm/execute.h"
#include "comm/group_work.h"

namespace tutti {

namespace {

/// A caller's mistake is reported and forgotten; anything else leaves ranks in different states and ends the
/// communicator.
bool isUsageError(Status status) {
  return status.code() == ncclInvalidArgument || status.code() == ncclInvalidUsage;
}

/// Runs the bodies at once, each on a thread of its own, a single one on the caller's. The first error (in the order
/// given) counts; `onError` hears of each as it happens.
Status runTogether(const std::vector<std::function<Status()>>& bodies, const std::function<void(std::size_t, Status)>& onError) {
  std::vector<Status> results(bodies.size());
  const auto runOne = [&](std::size_t i) {
    results[i] = bodies[i]();
    if (!results[i].ok()) onError(i, results[i]);
  };
  if (bodies.size() == 1) {
    runOne(0);
  } else {
    std::vector<Thread> threads;
    Status cannotStart;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      auto thread = Thread::start("ncclCommInit", [&runOne, i] { runOne(i); });
      if (!thread.ok()) {
        cannotStart = thread.status();
        onError(i, cannotStart);
        break;
      }
      threads.push_back(std::move(thread).value());
    }
    threads.clear();
    TRY(cannotStart);
  }
  for (const Status result : results) TRY(result);
  return {};
}

Status runJobs(std::vector<Job>& jobs, JobKind kind) {
  std::vector<std::function<Status()>> bodies;
  std::vector<ncclComm*> comms;
  for (Job& job : jobs) {
    if (job.kind != kind) continue;
    bodies.push_back(std::move(job.body));
    comms.push_back(job.comm);
  }
  if (bodies.empty()) return {};
  return runTogether(bodies, [&](std::size_t failed, Status why) {
    if (kind == JobKind::End) return;   // the others' ends do not depend on this one
    for (std::size_t i = 0; i < comms.size(); ++i) {
      if (i != failed) comms[i]->abort.raise(why, lastErrorText());
    }
  });
}

/// Nothing of the group was launched on these: their peers would wait for ever.
void failAll(const std::vector<PlannedComm>& planned, Status why) {
  if (isUsageError(why)) return;
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
Status execute(const std::vector<PlannedComm>& planned) {
  std::vector<CallGate::Pass> passes;
  for (const PlannedComm& one : planned) passes.emplace_back(one.comm->gate);
  Status status = connectAll(planned);
  for (const PlannedComm& one : planned) {
    if (!status.ok()) break;
    status = one.comm->abort.status();
    if (status.ok()) status = launchPlanned(one);
  }
  if (!status.ok()) failAll(planned, status);
  return status;
}

Status runAll(GroupWork& work, const std::vector<PlannedComm>& planned) {
  TRY(runJobs(work.jobs, JobKind::Init));
  TRY(execute(planned));
  TRY(runJobs(work.jobs, JobKind::Finalize));
  return runJobs(work.jobs, JobKind::End);
}

/// Hands the group to a thread; the communicators show ncclInProgress until it is done.
Result<Progress> runInBackground(std::shared_ptr<GroupWork> work, std::shared_ptr<std::vector<PlannedComm>> planned) {
  std::vector<ncclComm*> comms;
  for (const Job& job : work->jobs) comms.push_back(job.comm);
  for (const PlannedComm& one : *planned) comms.push_back(one.comm);
  ASSIGN(auto task, BackgroundTask::start([work, planned, comms] {
           const Status status = runAll(*work, *planned);
           if (status.ok()) return status;
           for (ncclComm* comm : comms) comm->abort.raise(status, lastErrorText());
           return status;
         }));
  for (ncclComm* comm : comms) {
    const std::lock_guard lock(comm->progress.mutex);
    comm->progress.task = task;
  }
  return Progress::Pending;
}

}  // namespace

Result<Progress> runGroup(GroupWork work) {
  std::vector<PlannedComm> planned;
  for (const CommOps& one : work.ops) {
    const CallGate::Pass pass(one.comm->gate);
    ASSIGN(PlannedComm plan, planComm(*one.comm, one.ops));
    planned.push_back(std::move(plan));
  }
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
