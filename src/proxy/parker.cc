#include "proxy/parker.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tutti::proxy {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the kernel looks at the word itself");

/// `timeout` null: none. Returns early whenever it likes; callers look at the word.
void futexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout, nullptr, 0);
}

void futexWakeOne(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

bool Parker::fallAsleep(std::uint32_t how) {
  std::uint32_t awake = kAwake;
  if (word_.compare_exchange_strong(awake, how, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
  word_.exchange(kAwake, std::memory_order_acq_rel);
  return false;
}

void Parker::sleep() {
  while (word_.load(std::memory_order_acquire) == kAsleep) futexWait(word_, kAsleep, nullptr);
  word_.exchange(kAwake, std::memory_order_acq_rel);
}

bool Parker::rest(std::uint32_t how, std::chrono::nanoseconds span) {
  if (!fallAsleep(how)) return true;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec timeout{.tv_sec = span.count() / kSecond, .tv_nsec = span.count() % kSecond};
  futexWait(word_, how, &timeout);  // once: an early end does no harm
  return word_.exchange(kAwake, std::memory_order_acq_rel) == kToken;
}

void Parker::wake() {
  const std::uint32_t before = word_.exchange(kToken, std::memory_order_acq_rel);
  if (before != kAwake && before != kToken) futexWakeOne(word_);
}

}  // namespace tutti::proxy
