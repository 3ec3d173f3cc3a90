// What memory held before the latest stores of kernels became visible: so loads may return what was there a while ago
// (weak memory, docs/softgpu.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tutti::softgpu {

/// Whose store it was: a thread of a block.
struct Storer {
  std::uint64_t block = 0;   ///< as StoreHistory::newBlock() numbered it
  std::uint32_t thread = 0;  ///< of the block
  std::uint32_t clock = 0;   ///< the thread's, when it stored
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  std::uint64_t shown = kNever;  ///< when a fence showed it to the whole block, by the time of StoreHistory
};

/// The latest stores of all kernels of the process, in the order in which they became visible. The time is how many of
/// them, and of other events, there have been. What the host stores is not among them. Any thread.
class StoreHistory {
 public:
  static constexpr std::size_t kLineBytes = 16;
  /// Stores that are remembered.
  static constexpr std::uint64_t kMost = 4096;

  /// Says of a store whether who loads must not miss it although it became visible after the time of the load.
  class Known {
   public:
    Known() = default;
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;
    /// `visibleAt`: when the store became visible to all; kNever: it has not.
    virtual bool mustSee(const Storer& storer, std::uint64_t visibleAt, std::uint64_t time) const = 0;

   protected:
    ~Known() = default;
  };

  StoreHistory() : latest_(kMost) {}
  StoreHistory(const StoreHistory&) = delete;
  StoreHistory& operator=(const StoreHistory&) = delete;
  static StoreHistory& ofProcess();

  /// A number that no other block has.
  std::uint64_t newBlock() { return ++blocks_; }
  /// A value that was in memory before this call is no later than this.
  std::uint64_t now() const { return now_.load(std::memory_order_acquire); }
  /// Something else happens; when.
  std::uint64_t tick();
  /// A store becomes visible: at most kLineBytes within aligned kLineBytes.
  void store(std::uintptr_t to, const unsigned char* from, std::size_t bytes, const Storer& storer);
  /// What was there at `time`, but for later stores that must be seen, and what was stored to the same line before
  /// those: at the earliest kMost before now.
  void load(unsigned char* to, std::uintptr_t from, std::size_t bytes, std::uint64_t time, const Known& known) const;

 private:
  struct Past {
    std::uintptr_t line = 0;
    std::uint64_t time = 0;    ///< of the event, from 1 on
    std::uint64_t before = 0;  ///< of the store to the same line before it; 0: none
    Storer storer;
    std::uint8_t offset = 0;
    std::uint8_t bytes = 0;
    unsigned char held[kLineBytes] = {};  ///< what was there until then
  };
  /// That of the next event, which forgets the oldest one. `mutex_` is held.
  Past& next();
  const Past& at(std::uint64_t time) const { return latest_[time % kMost]; }

  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> now_{0};
  mutable std::mutex mutex_;  ///< the rest, and the stores themselves
  std::vector<Past> latest_;
  std::unordered_map<std::uintptr_t, std::uint64_t> lastOf_;  ///< by line: the time of the last store to it
};

}  // namespace tutti::softgpu
