// The tasks of one communicator, as the progress engine (engine.h) drives them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "proxy/activity_refs.h"
#include "proxy/ctrl_events.h"

namespace tutti::proxy {

class ProgressTask;
class ProgressEngine;

/// How the engine sees the communicator that tasks belong to. All must not wait, and may call hold() and release() of
/// groups but nothing else of the engine. busy() and aborted() are called by whoever makes a round, one at a time, with
/// whatever locks a thread has that waits for its device: they take none. The others are called on the engine's thread.
struct GroupHooks {
  /// Whether kernels that use the tasks may be running. Required. Asked only when nobody holds the group and its tasks
  /// have been quiet for tens of microseconds.
  std::function<bool()> busy;
  /// Whether the communicator has failed: its tasks are left alone from then on. Asked at every turn. Empty: never.
  std::function<bool()> aborted;
  /// A task failed, which has been reported; the first time only.
  std::function<void(Status)> failed;
  /// Hears of what the engine does for it (ProxyCtrl), until the group ends. Null: nobody does.
  std::shared_ptr<plugin::EventSink> events = {};
};

/// The tasks of one communicator. Its engine polls them while it is active: it is held, kernels run, or a task has
/// something to finish.
class ProgressGroup {
 public:
  /// No thread may be inside another member. Waits for the engine's round; never called by the engine's thread.
  ~ProgressGroup();
  ProgressGroup(const ProgressGroup&) = delete;
  ProgressGroup& operator=(const ProgressGroup&) = delete;

  /// The engine drives `task` until remove(), which must come before the task's end. The engine looks at it at least
  /// once. Any thread but the engine's. Errors: ncclSystemError where the thread cannot be started.
  Status add(ProgressTask* task);
  /// When it returns, the engine does not touch the task any more. Harmless for a task that was never added. Waits for
  /// the engine's round, not for its sleep. Any thread but the engine's.
  void remove(ProgressTask* task);

  /// From now on kernels may use the tasks, whatever busy() says, until release(). Wakes the engine. Any thread, no
  /// locks; one atomic addition where the engine is up.
  void hold() {
    if (refs_.hold()) wake();
    nudge();
  }
  /// One for each hold(); busy() must tell from now on.
  void release() { refs_.release(); }

  /// A task failed or the communicator was aborted: the tasks are left alone. Any thread but the engine's.
  bool dead() const;
  /// Nothing is left to do for the tasks, until kernels or peers want something again. Any thread but the engine's.
  bool rests() const;

 private:
  friend class ProgressEngine;
  ProgressGroup(std::shared_ptr<ProgressEngine> engine, GroupHooks hooks);
  void wake();  ///< after refs_ said that the group has to be listed
  void nudge();

  const std::shared_ptr<ProgressEngine> engine_;
  const GroupHooks hooks_;
  ActivityRefs refs_;
  ProgressGroup* nextWoken_ = nullptr;  ///< while on ProgressEngine::woken_

  // Under the engine's turns:
  std::vector<ProgressTask*> tasks_;
  /// Without tasks or dead: on no list, yet marked as listed in refs_, so that a hold costs nothing.
  bool dormant_ = true;
  struct End {
    Status why;
    std::string said;   ///< the text of the error, which belongs to the thread that made the round
    bool told = false;  ///< or nothing to tell: it was aborted
  };
  std::optional<End> end_;  ///< it is dead
  std::uint32_t holdsSeen_ = 0;
  SteadyClock::time_point progressAt_;
  SteadyClock::time_point askAt_;
  CtrlEvents ctrl_;
  std::optional<ActivityRefs::Seen> idle_;  ///< what refs_ was before busy() said no, with nothing done since
};

}  // namespace tutti::proxy
