#include "softgpu/exec/fiber.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <cfenv>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

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
constexpr std::uint32_t kFewThreads = 8;
constexpr std::size_t kSlabStacks = 64;
constexpr std::size_t kWatchedBytes = 256;

/// The rounding and the treatment of tiny numbers that a process starts with. Switches between contexts keep what a
/// context was made with: without this, kernels would calculate as the application's thread that happens to run them.
class PlainArithmetic {
 public:
  PlainArithmetic(const PlainArithmetic&) = delete;
  PlainArithmetic& operator=(const PlainArithmetic&) = delete;
#if defined(__x86_64__)
  PlainArithmetic() : before_(_mm_getcsr()) {
    _mm_setcsr(kDefaultMxcsr);
  }
  ~PlainArithmetic() {
    _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kDefaultMxcsr = 0x1f80;
  const unsigned before_;
#else
  PlainArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~PlainArithmetic() {
    std::fesetenv(&before_);
  }

 private:
  std::fenv_t before_;
#endif
};

}  // namespace

bool Stack::overflown() const {
  if (guarded) return false;
  const auto* words = reinterpret_cast<const volatile std::uint64_t*>(lowest);
  for (std::size_t i = 0; i < kWatchedBytes / sizeof(std::uint64_t); ++i) {
    if (words[i] != 0) return true;
  }
  return false;
}

void Stack::forgetOverflow() const {
  if (!guarded) std::memset(lowest, 0, kWatchedBytes);
}

/// Maps `stacks` of them one above the other.
bool StackPool::map(std::size_t stacks, bool guarded) {
  const std::size_t bytes = kPage + stacks * kStackBytes;
  void* memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  char* begin = static_cast<char*>(memory);
  if (::mprotect(begin + kPage, bytes - kPage, PROT_READ | PROT_WRITE) != 0) {
    const int why = errno;
    ::munmap(memory, bytes);
    errno = why;
    return false;
  }
  mappings_.push_back({begin, bytes});
  for (std::size_t i = stacks; i-- > 0;) {
    Stack stack;
    stack.lowest = begin + kPage + i * kStackBytes;
    stack.size = kStackBytes - (made_++ % kColours) * kColourStep;
    stack.guarded = guarded;
#if defined(__SANITIZE_THREAD__)
    stack.tsanFiber = __tsan_create_fiber(0);
#endif
    free_[guarded].push_back(stack);
  }
  return true;
}

Stack StackPool::take(std::uint32_t threads) {
  const bool guarded = threads <= kFewThreads;
  std::vector<Stack>& free = free_[guarded];
  if (free.empty() && !map(guarded ? 1 : std::min<std::size_t>(threads, kSlabStacks), guarded)) return {};
  const Stack stack = free.back();
  free.pop_back();
  return stack;
}

StackPool::~StackPool() {
#if defined(__SANITIZE_THREAD__)
  for (const std::vector<Stack>& stacks : free_) {
    for (const Stack& stack : stacks) __tsan_destroy_fiber(stack.tsanFiber);
  }
#endif
  for (const Mapping& mapping : mappings_) ::munmap(mapping.begin, mapping.bytes);
}

void FiberContext::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  fakeStack_ = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_.lowest, stack_.size);  // what an abandoned fiber left behind
#endif
  const PlainArithmetic plain;
  context_ = boost::context::detail::make_fcontext(stack_.lowest + stack_.size, stack_.size, trampoline);
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
