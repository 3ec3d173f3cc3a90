// The engines that run, however many devices the process sees.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace tutti::softgpu {

class Engine;

/// Threads that wait go through these, again and again: a process of many sees the devices of all and has started one
/// engine. Grows only. Any thread.
class StartedEngines {
 public:
  /// `most`: as many as there are devices.
  explicit StartedEngines(std::size_t most) : places_(most) {}
  StartedEngines(const StartedEngines&) = delete;

  /// Once for each engine.
  void add(Engine& engine) {
    places_[count_.fetch_add(1, std::memory_order_acq_rel)].store(&engine, std::memory_order_release);
  }
  std::size_t size() const { return count_.load(std::memory_order_acquire); }
  /// In the order in which they were started; null for one that is just being added.
  Engine* at(std::size_t index) const { return places_[index].load(std::memory_order_acquire); }

 private:
  std::vector<std::atomic<Engine*>> places_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace tutti::softgpu
