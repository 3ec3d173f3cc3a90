// The thread that runs what is at the head of a device's streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/device/helper.h"
#include "softgpu/exec/block.h"
#include "softgpu/exec/fiber.h"
#include "softgpu/exec/task.h"

namespace tutti::softgpu {

class Random;
class Stream;
class WeakMemory;

/// One per device, started on first use, never joined: it parks itself when the process ends.
class Engine {
 public:
  /// `random` orders what runs next, `weak` is for weak memory; null: neither.
  Engine(int deviceIndex, int blockSlots, std::unique_ptr<Random> random, std::unique_ptr<Random> weak);
  ~Engine();
  void start();

  /// Any thread: there may be something new to do. A nap goes on: whoever waits does the work, or it ends soon.
  void wake();
  /// Any thread: does what is to be done once, in the engine's stead. False if nothing came of it, or somebody else is
  /// at it.
  bool attend();
  /// Any thread that attended: no longer, and there is work left.
  void takeOver();
  /// Counts how often its thread looked for work.
  std::uint32_t looks() const { return looks_.load(std::memory_order_relaxed); }
  /// There is work that may go on.
  bool busy() const { return busy_.load(std::memory_order_relaxed); }
  /// Its thread sleeps, or has not yet noticed that it was woken.
  bool asleep() const { return sleep_.load(std::memory_order_relaxed) != Sleep::None; }
  /// Adds a stream that has work; the machine's lock is held. wake() must follow.
  void adopt(const std::shared_ptr<Stream>& stream);
  /// Any thread: asks the engine to park and waits up to `milliseconds` for it.
  void park(int milliseconds);

  // For tasks, on the engine's thread:
  StackPool& stacks() { return stacks_; }
  BlockPool& blocks() { return blocks_; }
  Random* random() { return random_.get(); }
  /// The memory of a new block; null: it is not weak.
  std::unique_ptr<WeakMemory> weakMemory(std::uint32_t threads);
  bool takeSlot() { return freeSlots_ > 0 && freeSlots_-- > 0; }
  void releaseSlots(int count) { freeSlots_ += count; }
  int deviceIndex() const { return deviceIndex_; }
  /// Steady clock in nanoseconds.
  static std::int64_t now();

 private:
  enum class Sleep : std::uint8_t { None, Nap, Deep };

  void loop();
  bool othersAttend();
  Step attendOnce();
  Step stepAll();
  Step stepStream(Stream& stream);
  bool nextTask(Stream& stream);
  void finishTask(Stream& stream);
  void idle(Step state, std::uint32_t seen);
  void sleep(Sleep how, std::uint32_t seen, std::int64_t nanoseconds);

  const int deviceIndex_;
  std::mutex seat_;                   ///< whoever attends holds it, and what follows
  std::uint32_t attendedBefore_ = 0;  ///< attended_ when the last task ended
  int brief_ = 0;                     ///< goes up with brief tasks that somebody waits for, down with others
  int freeSlots_;
  std::unique_ptr<Random> random_;
  std::unique_ptr<Random> weak_;
  StackPool stacks_;
  BlockPool blocks_;
  std::vector<std::shared_ptr<Stream>> active_;
  std::vector<std::shared_ptr<Stream>> inbox_;  ///< guarded by the machine's lock
  std::atomic<bool> newStreams_{false};         ///< the inbox is not empty
  std::atomic<bool> busy_{false};
  std::atomic<std::uint32_t> looks_{0};
  std::atomic<std::uint32_t> attended_{0};  ///< by waiting threads; grows, but not by exactly one each
  std::atomic<std::uint32_t> signal_{0};
  std::atomic<Sleep> sleep_{Sleep::None};
  std::atomic<bool> mayNap_{false};  ///< tasks are brief and threads that wait can do them
  std::atomic<int> parked_{0};
  std::int64_t idleSince_ = 0;      ///< the thread's own
  std::uint32_t attendedSeen_ = 0;  ///< likewise
  std::int64_t nap_ = 0;            ///< likewise: how long the next nap is
  Helper helper_;
};

/// Tells engines of this process to park. Async-signal-unsafe; called once, at the end of the process.
void stopEngines();

}  // namespace tutti::softgpu
