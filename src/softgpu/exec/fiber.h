// Fibers: stacks, and switching between a scheduler and one of them, with the sanitizers told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

namespace tutti::softgpu {

/// A stack. Below it lies a guard page, or the next stack of a slab: then overflown() tells whether it held.
struct Stack {
  char* lowest = nullptr;  ///< first usable byte
  std::size_t size = 0;    ///< usable bytes; the top is offset by colour, so that equal frames do not share cache sets
  void* tsanFiber = nullptr;
  bool guarded = false;

  /// Somebody got to the last bytes of an unguarded stack. They are never touched otherwise, and zero.
  bool overflown() const;
  /// Makes overflown() false again, for the next block that gets this stack.
  void forgetOverflow() const;
};

/// Stacks to reuse. A guard page splits a mapping in two and a process may have some 65000: blocks of few threads get
/// guarded stacks, those of many get slabs of stacks with one guard page below all of them. One thread at a time.
class StackPool {
 public:
  ~StackPool();
  /// A stack for a block of `threads`; lowest is null when the system gives none, errno says why.
  Stack take(std::uint32_t threads);
  void give(const Stack& stack) { free_[stack.guarded].push_back(stack); }

 private:
  struct Mapping {
    char* begin;
    std::size_t bytes;
  };
  bool map(std::size_t stacks, bool guarded);
  std::vector<Stack> free_[2];  ///< by Stack::guarded
  std::vector<Mapping> mappings_;
  unsigned made_ = 0;
};

/// The scheduler's side of switches on one thread.
struct SwitchPoint {
  boost::context::detail::fcontext_t context = nullptr;
  void* fakeStack = nullptr;
  const void* stackBottom = nullptr;
  std::size_t stackSize = 0;
  void* tsanFiber = nullptr;
};

/// One suspended flow of control on its own stack.
class FiberContext {
 public:
  using Entry = void (*)(void* argument);
  /// Where it runs from the next start() on.
  void own(const Stack& stack) { stack_ = stack; }
  /// Prepares to run entry(argument) at the first enter(). `entry` ends by calling leaveForGood().
  void start(Entry entry, void* argument);
  /// Scheduler's side: runs the fiber until it leaves.
  void enter(SwitchPoint& scheduler);
  /// Fiber's side: back to the scheduler; returns when entered again.
  void leave(SwitchPoint& scheduler);
  /// Fiber's side: never comes back.
  [[noreturn]] void leaveForGood(SwitchPoint& scheduler);
  const Stack& stack() const { return stack_; }

 private:
  static void trampoline(boost::context::detail::transfer_t from);
  boost::context::detail::fcontext_t context_ = nullptr;
  Stack stack_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  SwitchPoint* scheduler_ = nullptr;
  void* fakeStack_ = nullptr;
};

}  // namespace tutti::softgpu
