// Fibers: stacks, and switching between a scheduler and one of them, with the sanitizers told.
#pragma once

#include <cstddef>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

namespace tutti::softgpu {

/// A stack with a guard page below it.
struct Stack {
  char* lowest = nullptr;  ///< first usable byte
  std::size_t size = 0;    ///< usable bytes; the top is offset by colour, so that equal frames do not share cache sets
  void* tsanFiber = nullptr;
};

/// Stacks to reuse. One thread only.
class StackPool {
 public:
  ~StackPool();
  /// A stack with lowest == nullptr when the system has no memory.
  Stack take();
  void give(Stack stack) { free_.push_back(stack); }

 private:
  std::vector<Stack> free_;
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
  /// Prepares to run entry(argument) at the first enter(). `entry` ends by calling leaveForGood().
  void start(Stack stack, Entry entry, void* argument);
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
