#include "comm/enqueue/group_jobs.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/threads/thread.h"
#include "comm/state/background.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// The error to return for several at once: the first in time that is no mere echo of another rank's.
class FirstError {
 public:
  void note(Status why) {
    const std::lock_guard lock(mutex_);
    const bool echo = first_.code() == ncclRemoteError && why.code() != ncclRemoteError;
    if (!first_.ok() && !echo) return;
    first_ = why;
    text_ = threadErrorText();  // not the process's: that may be another communicator's
  }
  /// After it the text is the calling thread's last error: it was another's.
  Status take() {
    restoreLastError(text_);
    return first_;
  }

 private:
  std::mutex mutex_;
  Status first_;
  std::string text_;
};

/// Children of one parent are made one after the other: the others' ranks are told apart by that order.
void addInOrder(std::vector<Job>& jobs, Job job) {
  const auto before = std::find_if(jobs.begin(), jobs.end(), [&](const Job& other) {
    return job.kind == JobKind::Child && other.kind == JobKind::Child && other.comm == job.comm;
  });
  if (before == jobs.end()) return jobs.push_back(std::move(job));
  before->body = [first = std::move(before->body), second = std::move(job.body)] {
    const Status earlier = first();
    const Status later = second();
    return earlier.ok() ? later : earlier;
  };
}

}  // namespace

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
    return error.take();
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
  threads.clear();  // joins
  return error.take();
}

Status runJobs(GroupWork& work, JobKind kind) {
  const auto inTurn = [kind](const Job& job) {
    return job.kind == kind || (kind == JobKind::Init && job.kind == JobKind::Child);
  };
  std::vector<Job> jobs;
  for (Job& job : work.jobs) {
    if (inTurn(job)) addInOrder(jobs, std::move(job));
  }
  std::erase_if(work.jobs, inTurn);
  if (jobs.empty()) return {};
  std::vector<std::function<Status()>> bodies;
  for (Job& job : jobs) bodies.push_back(std::move(job.body));
  const Status status = runTogether(bodies, [&](std::size_t failed, Status why) {
    // The others' ends do not depend on this one, nor does anything on a child.
    if (kind == JobKind::Revoke || kind == JobKind::End || jobs[failed].kind == JobKind::Child) return;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].kind == JobKind::Child) continue;
      // An init that failed has said so itself, unless it threw or there was no thread to run it on.
      if (i != failed || kind == JobKind::Init) jobs[i].comm->abort.raise(why, lastErrorText());
    }
  });
  for (const Job& job : jobs) {
    // Also where there was no thread to run it on.
    if (job.kind == JobKind::Init) job.comm->progress.starting.store(false, std::memory_order_release);
  }
  return status;
}

}  // namespace tutti::comm
