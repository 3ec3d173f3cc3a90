// How one thread sleeps and any other wakes it, without a lock and without lost wake-ups.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tutti::proxy {

/// A token that any thread leaves and one thread, the owner, takes. Whoever makes work leaves a token after it; the
/// owner sleeps only where there is none, and looks at all work after it took one and before it sleeps again. No
/// wake-up is lost: a token left before the owner falls asleep keeps it from sleeping (its compare-and-swap fails), and
/// one left later finds it marked as asleep and wakes it through the kernel, which itself checks the word before it
/// suspends.
class Parker {
 public:
  /// Owner: takes a token, if there is one. Else (true) sleep() has to follow.
  bool settleDown() { return fallAsleep(kAsleep); }
  /// Owner, after settleDown(): sleeps until there is a token, and takes it.
  void sleep();
  /// Owner: sleeps until there is a token, and takes it, for at most `span`; whether there was one.
  bool pause(std::chrono::nanoseconds span) { return rest(kPausing, span); }
  /// The same, and a nudge does not end it.
  bool nap(std::chrono::nanoseconds span) { return rest(kNapping, span); }

  /// Leaves a token. Any thread; a system call only where the owner sleeps.
  void wake();
  /// Ends a pause, if the owner seems to be in one; else leaves nothing. Any thread.
  void nudge() {
    if (word_.load(std::memory_order_relaxed) == kPausing) wake();
  }

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kToken = 1;
  static constexpr std::uint32_t kAsleep = 2;
  static constexpr std::uint32_t kPausing = 3;
  static constexpr std::uint32_t kNapping = 4;
  /// False: there was a token, which is taken now.
  bool fallAsleep(std::uint32_t how);
  bool rest(std::uint32_t how, std::chrono::nanoseconds span);

  std::atomic<std::uint32_t> word_{kAwake};
};

}  // namespace tutti::proxy
