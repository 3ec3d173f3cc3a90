// Work of non-blocking communicators that goes on after the call has returned.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/status.h"
#include "base/threads/thread.h"

namespace tutti::comm {

/// Runs a body on a thread where nobody catches what it throws: an exception, such as the end of host memory, becomes
/// an ncclSystemError.
Status runGuarded(const std::function<Status()>& body) noexcept;

/// One piece of work on a thread of its own, shared by all communicators it works for. Joined by its last owner, which
/// must not be the thread itself.
class BackgroundTask {
 public:
  /// One that has not begun, to be shown to everybody concerned before its thread exists.
  static std::shared_ptr<BackgroundTask> idle() { return std::shared_ptr<BackgroundTask>(new BackgroundTask); }
  static Result<std::shared_ptr<BackgroundTask>> start(std::function<Status()> body);
  ~BackgroundTask() { thread_.join(); }

  /// Begins; once only. Where no thread can be had the task is done, with that error.
  Status run(std::function<Status()> body);

  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Whether it ends in time.
  bool endsBy(Deadline deadline) const;
  /// Waits for the end, also of a task that has not begun yet; the body's status.
  Status wait();

 private:
  BackgroundTask() = default;
  std::atomic<bool> done_{false};
  Status status_;
  std::mutex mutex_;
  Thread thread_;
};

}  // namespace tutti::comm
