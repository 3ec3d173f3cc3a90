#include "comm/background.h"

namespace tutti {

Result<std::shared_ptr<BackgroundTask>> BackgroundTask::start(std::function<Status()> body) {
  std::shared_ptr<BackgroundTask> task(new BackgroundTask);
  // The thread borrows the task: its destructor joins before anything goes away.
  ASSIGN(task->thread_, Thread::start("tutti comm", [self = task.get(), run = std::move(body)] {
           self->status_ = run();
           self->done_.store(true, std::memory_order_release);
         }));
  return task;
}

Status BackgroundTask::wait() {
  const std::lock_guard lock(mutex_);
  thread_.join();
  return status_;
}

bool CallGate::awaitEmpty(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (inside_ > 0) {
    if (deadline.expired()) return false;
    empty_.wait_for(lock, deadline.remaining(milliseconds(100)));
  }
  return true;
}

void CallGate::enter() {
  const std::lock_guard lock(mutex_);
  ++inside_;
}

void CallGate::leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0) empty_.notify_all();
}

}  // namespace tutti
