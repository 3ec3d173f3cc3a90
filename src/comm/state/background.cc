#include "comm/state/background.h"

#include <chrono>
#include <exception>
#include <new>
#include <thread>

#include "base/log.h"

namespace tutti::comm {

Status runGuarded(const std::function<Status()>& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(ncclSystemError, "A thread of the library: the process is out of host memory");
  } catch (const std::exception& e) {
    return fail(ncclSystemError, "A thread of the library: unexpected exception: {}. Please report this defect",
                e.what());
  } catch (...) {
    return fail(ncclSystemError, "A thread of the library: unexpected exception. Please report this defect");
  }
}

Result<std::shared_ptr<BackgroundTask>> BackgroundTask::start(std::function<Status()> body) {
  auto task = idle();
  TRY(task->run(std::move(body)));
  return task;
}

Status BackgroundTask::run(std::function<Status()> body) {
  const auto finish = [this](Status status) {
    status_ = status;
    done_.store(true, std::memory_order_release);
    done_.notify_all();
  };
  const std::lock_guard lock(mutex_);
  // The thread borrows the task: its destructor joins before anything goes away.
  auto thread = Thread::start("tutti comm", [finish, run = std::move(body)] { finish(runGuarded(run)); });
  if (!thread.ok()) {
    finish(thread.status());
    return thread.status();
  }
  thread_ = std::move(thread).value();
  return {};
}

bool BackgroundTask::endsBy(Deadline deadline) const {
  while (!done() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return done();
}

Status BackgroundTask::wait() {
  done_.wait(false, std::memory_order_acquire);
  const std::lock_guard lock(mutex_);
  thread_.join();
  return status_;
}

}  // namespace tutti::comm
