#include "softgpu/core/fiber.h"

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tutti::softgpu {
namespace {

constexpr std::size_t kPage = 4096;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = std::size_t{256} << 10;
#else
constexpr std::size_t kStackBytes = std::size_t{64} << 10;
#endif
constexpr std::size_t kColourStep = 320;
constexpr unsigned kColours = 12;

}  // namespace

Stack StackPool::take() {
  if (!free_.empty()) {
    Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* memory = ::mmap(nullptr, kStackBytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {};
  Stack stack;
  stack.lowest = static_cast<char*>(memory) + kPage;
  if (::mprotect(stack.lowest, kStackBytes, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(memory, kStackBytes + kPage);
    return {};
  }
  stack.size = kStackBytes - (made_++ % kColours) * kColourStep;
#if defined(__SANITIZE_THREAD__)
  stack.tsanFiber = __tsan_create_fiber(0);
#endif
  return stack;
}

StackPool::~StackPool() {
  for (const Stack& stack : free_) {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(stack.tsanFiber);
#endif
    ::munmap(stack.lowest - kPage, kStackBytes + kPage);
  }
}

void FiberContext::start(Stack stack, Entry entry, void* argument) {
  stack_ = stack;
  entry_ = entry;
  argument_ = argument;
  fakeStack_ = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack.lowest, stack.size);  // what an abandoned fiber left behind
#endif
  context_ = boost::context::detail::make_fcontext(stack.lowest + stack.size, stack.size, trampoline);
}

void FiberContext::trampoline(boost::context::detail::transfer_t from) {
  auto* self = static_cast<FiberContext*>(from.data);
  self->scheduler_->context = from.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->scheduler_->stackBottom, &self->scheduler_->stackSize);
#endif
  self->entry_(self->argument_);
}

void FiberContext::enter(SwitchPoint& scheduler) {
  scheduler_ = &scheduler;
#if defined(__SANITIZE_THREAD__)
  scheduler.tsanFiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(stack_.tsanFiber, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler.fakeStack, stack_.lowest, stack_.size);
#endif
  context_ = boost::context::detail::jump_fcontext(context_, this).fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler.fakeStack, nullptr, nullptr);
#endif
}

void FiberContext::leave(SwitchPoint& scheduler) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(scheduler.tsanFiber, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fakeStack_, scheduler.stackBottom, scheduler.stackSize);
#endif
  scheduler.context = boost::context::detail::jump_fcontext(scheduler.context, nullptr).fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fakeStack_, &scheduler.stackBottom, &scheduler.stackSize);
#endif
}

void FiberContext::leaveForGood(SwitchPoint& scheduler) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(scheduler.tsanFiber, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, scheduler.stackBottom, scheduler.stackSize);
#endif
  boost::context::detail::jump_fcontext(scheduler.context, nullptr);
  __builtin_unreachable();
}

}  // namespace tutti::softgpu
