// The engines that run, however many devices the process sees.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <vector>

namespace tutti::softgpu {

class Engine;

/// Threads that wait go through these, again and again: a process of many sees the devices of all and has started one
/// engine. They are gone through by the numbers of their devices, whatever the order in which they were started: that
/// is how programs launch, so that one turn of the waiting thread brings each device as far as it can come. (A
/// Broadcast down a chain of four devices took twice as long in other orders.) Grows only. Any thread.
class StartedEngines {
 public:
  /// An engine's place, from 0 in the order of starting: it stays the same for good.
  using Place = std::size_t;
  static constexpr Place kNone = std::numeric_limits<Place>::max();

  /// `most`: as many as there are devices.
  explicit StartedEngines(std::size_t most) : entries_(most) {}
  StartedEngines(const StartedEngines&) = delete;

  /// Once for each engine, with the number of its device.
  void add(Engine& engine, int device) {
    const std::lock_guard lock(mutex_);
    const Place place = size_.load(std::memory_order_relaxed);
    std::atomic<Place>* link = &first_;
    while (link->load(std::memory_order_relaxed) != kNone && entries_[*link].device < device) {
      link = &entries_[*link].next;
    }
    entries_[place].engine = &engine;
    entries_[place].device = device;
    entries_[place].next.store(link->load(std::memory_order_relaxed), std::memory_order_relaxed);
    size_.store(place + 1, std::memory_order_relaxed);
    link->store(place, std::memory_order_release);
  }
  /// All places that first() and next() give this thread before are below.
  std::size_t size() const { return size_.load(std::memory_order_acquire); }
  /// Of the lowest device, and then of the next higher one; kNone: there is none. One that is added meanwhile may be
  /// left out.
  Place first() const { return first_.load(std::memory_order_acquire); }
  Place next(Place place) const { return entries_[place].next.load(std::memory_order_acquire); }
  Engine& at(Place place) const { return *entries_[place].engine; }

 private:
  struct Entry {
    Engine* engine = nullptr;
    int device = 0;
    std::atomic<Place> next{kNone};
  };

  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::atomic<Place> first_{kNone};
  std::atomic<std::size_t> size_{0};
};

}  // namespace tutti::softgpu
