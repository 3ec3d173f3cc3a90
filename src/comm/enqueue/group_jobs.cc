#include "comm/enqueue/group_jobs.h"

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
    text_ = lastErrorText();
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
    // The others' ends do not depend on this one.
    if (kind == JobKind::Revoke || kind == JobKind::End) return;
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

}  // namespace tutti::comm
