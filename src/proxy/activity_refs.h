// Who holds a group, and whether the engine has it on its list: one word, changed without locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti::proxy {

/// The engine drops a group from its list when nobody holds it, no kernel runs and no task has work; whoever holds it
/// again puts it back. Both sides meet in one word,
///   bit 0: listed;  bits 1-31: holds now;  bits 32-63: holds ever made,
/// so that the engine's decision is one compare-and-swap with what it had seen before it asked for kernels and tasks: a
/// hold since then makes it fail, also one that has been let go of again. hold() in turn finds out from the value it
/// changed whether the group had been dropped. Any thread, but for rest().
class ActivityRefs {
 public:
  /// One look at the word.
  class Seen {
   public:
    bool listed() const { return (word_ & kListed) != 0; }
    bool held() const { return (word_ & kHeld) != 0; }
    std::uint32_t holdsMade() const { return static_cast<std::uint32_t>(word_ >> 32); }
    friend bool operator==(Seen, Seen) = default;

   private:
    friend class ActivityRefs;
    explicit Seen(std::uint64_t word) : word_(word) {}
    std::uint64_t word_;
  };

  /// Whether the caller has to put the group on the list.
  bool hold() { return (word_.fetch_add(kOneHold + kOneMade, std::memory_order_acq_rel) & kListed) == 0 && list(); }
  /// What the caller did before (the event behind its launch) is visible to an engine that sees the group let go of.
  void release() { word_.fetch_sub(kOneHold, std::memory_order_release); }
  /// Marks the group as listed without a hold; whether the caller has to put it there.
  bool list() { return (word_.fetch_or(kListed, std::memory_order_acq_rel) & kListed) == 0; }

  Seen look() const { return Seen(word_.load(std::memory_order_acquire)); }
  /// Engine's thread: marks the group as dropped, unless anything happened since `seen`; whether it did.
  bool rest(Seen seen) {
    return word_.compare_exchange_strong(seen.word_, seen.word_ & ~kListed, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kListed = 1;
  static constexpr std::uint64_t kOneHold = 2;
  static constexpr std::uint64_t kOneMade = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kHeld = kOneMade - kOneHold;
  /// A new group has no tasks and is on no list, but nothing is to be done when it is held: see ProgressGroup.
  std::atomic<std::uint64_t> word_{kListed};
};

}  // namespace tutti::proxy
