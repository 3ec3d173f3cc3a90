// Streams: ordered queues of tasks, the order among them, and their way into a graph being captured.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "softgpu/exec/operation.h"
#include "softgpu/exec/task.h"
#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

class Capture;
class Context;
class Stream;
struct Node;

/// A point of another stream that a task comes after.
struct After {
  std::shared_ptr<Stream> stream;
  std::uint64_t sequence;
};

struct QueuedTask {
  std::unique_ptr<Task> task;
  std::vector<After> after;
};

/// A CUstream. Members without a remark are guarded by the machine's lock.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Context& context, unsigned flags, int priority);
  Context& context() const { return context_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }
  std::uint64_t id() const { return id_; }
  bool nonBlocking() const { return (flags_ & CU_STREAM_NON_BLOCKING) != 0; }

  /// Appends to the queue, or to the graph while capturing. Takes the machine's lock.
  CUresult submit(const Operation& operation);
  /// Appends a ready-made task; the lock is held by the caller.
  void append(std::unique_ptr<Task> task);
  /// Blocks the calling thread until everything submitted so far is done. Returns the context's error, if any.
  CUresult synchronize();
  bool idle() const { return completed.load(std::memory_order_acquire) == submitted.load(std::memory_order_acquire); }
  /// Blocks the calling thread until `sequence` tasks are done.
  void waitFor(std::uint64_t sequence);

  std::atomic<std::uint64_t> submitted{0};
  std::atomic<std::uint64_t> completed{0};
  std::deque<QueuedTask> queue;
  bool active = false;  ///< on its engine's list
  std::condition_variable finished;
  int waiters = 0;

  std::shared_ptr<Capture> capture;  ///< null: not capturing
  std::vector<Node*> captureAfter;   ///< nodes that the next captured one comes after

  std::optional<QueuedTask> head;  ///< the engine's own
  std::int64_t headWork = 0;       ///< likewise: nanoseconds spent on it

 private:
  std::vector<After> orderAmongBlocking() const;
  Context& context_;
  unsigned flags_;
  int priority_;
  std::uint64_t id_;
};

}  // namespace tutti::softgpu
