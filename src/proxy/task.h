// What the progress engine drives: pieces of work that advance without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace tutti::proxy {

class StepEvents;

/// What a task has done so far; written by whoever makes the engine's round, read by any.
struct TaskCounters {
  std::uint64_t posted = 0;  ///< steps that the kernel, or the network, has handed to the task
  std::uint64_t done = 0;    ///< steps that the task has finished
  std::uint64_t bytes = 0;
  std::uint64_t stalls = 0;  ///< times that the network could not take a step at once
};

/// Who keeps steps that a sending task was given and that have not come through.
enum class BlockedBy : std::uint8_t {
  Nobody,
  Network,  ///< has not taken, finished or delivered them
  Relay,    ///< the rank that sends in our stead, whose engine makes no turn
};
struct PendingSend {
  BlockedBy blockedBy = BlockedBy::Nobody;
  int relay = -1;  ///< the rank that sends in our stead; -1: none does
};

/// One end of a connection that a host thread has to drive while kernels use it. advance() and quiet() are called
/// between add() and remove(), by one thread at a time: the engine's, or one that drives in its stead
/// (ProgressEngine::drive).
class ProgressTask {
 public:
  virtual ~ProgressTask() = default;
  /// Does everything that can be done without waiting; whether anything was.
  virtual Result<bool> advance() = 0;
  /// Nothing is under way that only this task can finish: the engine may sleep, if no kernel runs either.
  virtual bool quiet() const = 0;
  /// Kernels use it no more, at one end or the other, and its connection is to end in peace: from now on it is not
  /// quiet until what that takes is done, or has taken too long. Any thread.
  virtual void part() {}
  /// It is not at that, or not any more. Any thread.
  virtual bool parted() const { return true; }
  /// Somebody waits for what only this task can finish. A task that only wants to hear that all is well is not quiet,
  /// but presses nobody.
  virtual bool presses() const { return !quiet(); }
  /// Any thread.
  virtual TaskCounters counters() const = 0;
  /// "send to rank 3 (host b, device 0) by NET/Socket/0 on channel 1: step 17, waits for the network to take 4096
  /// bytes", for stall reports. Any thread.
  virtual std::string describe() const = 0;
  /// Of a protocol (its number): what profilers hear of its steps; null: there are none. The same each time. Any
  /// thread.
  virtual std::shared_ptr<StepEvents> stepEvents(std::size_t /*protocol*/) const { return {}; }
  /// For verdicts on stalls, which compare both ends of a connection: of a sender. Any thread.
  virtual PendingSend hold() const { return {}; }
  /// … of a receiver: the network could bring a message of that protocol (its number) and has not. Any thread.
  virtual bool starves(std::size_t /*protocol*/) const { return false; }
};

}  // namespace tutti::proxy
