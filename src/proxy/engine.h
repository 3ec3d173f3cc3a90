// The progress engine: one thread per device that drives the tasks of all communicators on it, and sleeps while there is
// nothing to drive.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "proxy/task.h"

namespace tutti {

class ProgressEngine;

/// How the engine sees the communicator that tasks belong to. All are called on the engine's thread and must not wait.
struct GroupHooks {
  /// Whether kernels that use the tasks may be running.
  std::function<bool()> busy;
  /// Whether the communicator has failed: its tasks are left alone from then on.
  std::function<bool()> aborted;
  /// A task failed; the first time only.
  std::function<void(Status, const std::string& text)> failed;
};

/// The tasks of one communicator. add() and remove() any thread; hold() and release() any thread, without locks.
class ProgressGroup {
 public:
  ~ProgressGroup();
  ProgressGroup(const ProgressGroup&) = delete;

  /// `task` must outlive its removal.
  void add(ProgressTask* task);
  /// When it returns, the engine does not touch the task any more.
  void remove(ProgressTask* task);

  /// From now on kernels may use the tasks, whatever busy() says, until release(). Wakes the engine.
  void hold();
  void release();

 private:
  friend class ProgressEngine;
  ProgressGroup(std::shared_ptr<ProgressEngine> engine, GroupHooks hooks);
  std::shared_ptr<ProgressEngine> engine_;
  GroupHooks hooks_;
  std::vector<ProgressTask*> tasks_;     ///< under the engine's lock
  std::atomic<int> holds_{0};
  std::atomic<bool> active_{false};
  bool dead_ = false;                    ///< engine's thread: a task failed, or the communicator was aborted
};

}  // namespace tutti
