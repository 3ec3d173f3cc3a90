#include "comm/enqueue/run_group.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "comm/enqueue/comm_work.h"
#include "comm/enqueue/group_jobs.h"
#include "comm/state/background.h"
#include "comm/state/communicator.h"
#include "comm/state/membership.h"

namespace tutti::comm {

namespace {

Status planAll(const GroupWork& work) {
  for (const auto& one : work.comms()) TRY(one->plan());
  return {};
}

bool mustConnect(const GroupWork& work) {
  const auto comms = work.comms();
  return std::any_of(comms.begin(), comms.end(), [](const auto& one) { return one->mustConnect(); });
}

bool mustCheck(const GroupWork& work) {
  const auto comms = work.comms();
  return std::any_of(comms.begin(), comms.end(), [](const auto& one) { return one->mustCheckCalls(); });
}

/// Relatives one after the other, in the order of the group: what one of them opens the next one finds.
Status connectInOrder(const std::vector<CommWork*>& relatives) {
  for (CommWork* one : relatives) TRY(one->connect());
  return {};
}

Status connectAll(const GroupWork& work) {
  if (!mustConnect(work)) return {};
  std::vector<std::vector<CommWork*>> families;
  std::vector<ncclComm*> comms;
  for (const auto& one : work.comms()) {
    if (!one->mustConnect()) continue;
    comms.push_back(&one->comm());
    const auto& own = one->comm().membership->family;
    const auto family = std::find_if(families.begin(), families.end(), [&](const std::vector<CommWork*>& known) {
      return own != nullptr && known.front()->comm().membership->family == own;
    });
    if (family == families.end()) {
      families.push_back({one.get()});
    } else {
      family->push_back(one.get());
    }
  }
  std::vector<std::function<Status()>> bodies;
  bodies.reserve(families.size());
  for (const auto& family : families) bodies.push_back([&family] { return connectInOrder(family); });
  // Each on its own thread: one thread may drive both ends of a connection.
  return runTogether(bodies, [&](std::size_t, Status why) {
    for (ncclComm* comm : comms) comm->abort.raise(why, lastErrorText());
  });
}

/// Compares what ranks are about to do. One of them waits for all: communicators of one thread do so on threads of
/// their own, for they may be ranks of one. Where some refuse and others do not, other ranks of these may go on: they
/// fail.
Status checkCalls(const GroupWork& work) {
  std::vector<CommWork*> checked;
  for (const auto& one : work.comms()) {
    if (one->mustCheckCalls()) checked.push_back(one.get());
  }
  if (checked.empty()) return {};
  std::vector<Status> found(checked.size());
  std::vector<std::function<Status()>> bodies;
  for (std::size_t i = 0; i < checked.size(); ++i)
    bodies.push_back([&found, &checked, i] { return found[i] = checked[i]->checkCalls(); });
  const Status status = runTogether(bodies, [&](std::size_t i, Status why) {
    found[i] = why;
    if (!concernsAllRanks(why)) checked[i]->comm().abort.raise(why, lastErrorText());
  });
  if (status.ok()) return status;
  for (const auto& one : work.comms()) {
    const auto at = std::find(checked.begin(), checked.end(), one.get());
    const bool refused = at != checked.end() && !found[static_cast<std::size_t>(at - checked.begin())].ok();
    if (!refused) failComm(one->comm(), status);
  }
  return status;
}

/// A group was not, or not as a whole, launched: peers would wait for ever.
void failAll(const GroupWork& work, Status why, bool anyLaunched) {
  // A caller's mistake is reported and forgotten where nothing has come of it; else ranks are in different states.
  if (concernsAllRanks(why) && !anyLaunched) {
    for (const auto& one : work.comms()) one->forgetCalls();
    return;
  }
  for (const auto& one : work.comms()) failComm(one->comm(), why);
}

/// Why a group failed, said better where what it met was that another thread has revoked a communicator.
Status causeOf(const GroupWork& work, Status found) {
  for (const auto& one : work.comms()) TRY(one->checkMayGoOn());
  return found;
}

/// Connects whatever is missing anywhere before the first launch, and launches everywhere before anything could wait.
Status launchInOrder(const GroupWork& work) {
  Status status = work.awaitTurns();
  if (status.ok()) status = checkCalls(work);
  if (status.ok()) status = connectAll(work);
  for (const auto& one : work.comms()) {
    if (status.ok()) status = one->loadKernels();
  }
  bool anyLaunched = false;
  for (const auto& one : work.comms()) {
    if (!status.ok()) break;
    status = one->comm().abort.status();
    if (status.ok()) status = one->launch(work.event.handle());
    anyLaunched = anyLaunched || (status.ok() && one->launches());
  }
  if (status.ok()) return status;
  status = causeOf(work, status);
  failAll(work, status, anyLaunched);
  return status;
}

Status launchAll(const GroupWork& work) {
  try {
    return launchInOrder(work);
  } catch (...) {  // out of memory, at any place: what was called is not what others take it for
    for (const auto& one : work.comms()) one->forgetCalls();
    throw;
  }
}

/// Everything but the planning.
Status carryOut(GroupWork& work) {
  Status status = runJobs(work, JobKind::Init);
  if (status.ok()) status = launchAll(work);
  work.leaveComms();  // an abort, perhaps the group's own, waits until nobody is inside
  if (status.ok()) status = runJobs(work, JobKind::Memory);
  if (status.ok()) status = runJobs(work, JobKind::Finalize);
  return endAll(work, status);
}

/// Hands the group to a thread; the communicators show ncclInProgress until it is done.
Result<Progress> carryOutInBackground(GroupWork&& taken) {
  const auto work = std::make_shared<GroupWork>(std::move(taken));
  std::vector<ncclComm*> comms;
  std::vector<ncclComm*> concerned;  // by a failure
  for (const Job& job : work->jobs) {
    comms.push_back(job.comm);
    if (job.kind != JobKind::Child) concerned.push_back(job.comm);
  }
  for (const auto& one : work->comms()) {
    // Of what its jobs are called: else it is the operations that go on.
    if (std::find(comms.begin(), comms.end(), &one->comm()) == comms.end()) one->comm().progress.pending = nullptr;
    comms.push_back(&one->comm());
    concerned.push_back(&one->comm());
  }
  // Shown before it begins: whoever aborts or asks meanwhile must find it.
  const std::shared_ptr<BackgroundTask> task = BackgroundTask::idle();
  for (ncclComm* comm : comms) {
    const std::lock_guard lock(comm->progress.mutex);
    comm->progress.task = task;
  }
  const Status started = task->run([work, concerned] {
    const Status status = carryOut(*work);
    if (status.ok()) return status;
    for (ncclComm* comm : concerned) comm->abort.raise(status, lastErrorText());
    return status;
  });
  if (started.ok()) return Progress::Pending;
  for (ncclComm* comm : concerned) comm->abort.raise(started, lastErrorText());
  dropWork(*work, started);
  return started;
}

}  // namespace

Result<Progress> runGroup(GroupWork& work) {
  const Status planned = planAll(work);
  if (!planned.ok()) return endAll(work, planned);
  work.takeTurns();
  const bool mayWait = !work.jobs.empty() || mustCheck(work) || mustConnect(work) || work.mustWaitForTurn();
  const bool nonBlocking = work.blocking.has_value() && !*work.blocking && !work.forceBlocking;
  if (nonBlocking && mayWait) return carryOutInBackground(std::move(work));
  TRY(carryOut(work));
  return Progress::Done;
}

Status endAll(GroupWork& work, Status soFar) {
  work.leaveComms();
  const auto isEnd = [](const Job& job) { return job.kind == JobKind::Revoke || job.kind == JobKind::End; };
  GroupWork ends;
  for (Job& job : work.jobs) {
    if (isEnd(job)) ends.jobs.push_back(std::move(job));
  }
  std::erase_if(work.jobs, isEnd);
  // First: what it touches may be about to end.
  if (!soFar.ok()) dropWork(work, soFar);
  for (const JobKind kind : {JobKind::Revoke, JobKind::End}) {
    const Status ended = runJobs(ends, kind);
    if (soFar.ok()) soFar = ended;
  }
  return soFar;
}

}  // namespace tutti::comm
