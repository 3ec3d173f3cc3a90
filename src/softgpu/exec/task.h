// Work that an engine carries out in steps.
#pragma once

#include <memory>

namespace tutti::softgpu {

class Engine;

enum class Step {
  Done,      ///< finished
  Progress,  ///< did something, wants to go on
  Polling,   ///< waits for memory to change: look again, nobody will say so
  Blocked    ///< waits for something that wakes the engine
};

/// One piece of work of a stream. Steps run on the engine's thread only and are short: others share the device.
class Task {
 public:
  Task() = default;
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual Step step(Engine& engine) = 0;
  /// Called instead of a step when the context has failed: whoever waits for this task must not wait for ever.
  virtual void abandon() {}
};

}  // namespace tutti::softgpu
