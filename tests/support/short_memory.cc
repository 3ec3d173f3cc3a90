#include "support/short_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace tutti::test {

namespace {

constinit std::atomic<std::size_t> limit{0};  // 0: none
constinit std::atomic<int> refused{0};
thread_local constinit bool exempt = false;
thread_local constinit bool none = false;

constinit std::atomic<bool> counting{false};
constinit std::atomic<long> counted{0};
constinit std::atomic<long> chosen{-1};

bool refuses(std::size_t bytes) {
  if (counting.load(std::memory_order_relaxed) && !exempt && counted++ == chosen.load()) return true;
  const std::size_t most = limit.load();
  if (!none && (exempt || most == 0 || bytes < most)) return false;
  ++refused;
  return true;
}

}  // namespace

ShortMemory::ShortMemory(std::size_t bytes) {
  exempt = true;
  refused = 0;
  limit = bytes;
}
ShortMemory::~ShortMemory() {
  limit = 0;
  exempt = false;
}
int ShortMemory::refusals() {
  return refused;
}

OneRefusal::OneRefusal(long number) {
  exempt = true;
  counted = 0;
  chosen = number;
  counting = true;
}
OneRefusal::~OneRefusal() {
  counting = false;
  exempt = false;
}
long OneRefusal::seen() {
  return counted;
}

void refuseOneByOne(long runs, std::chrono::seconds bound, const std::function<void()>& life,
                    const std::function<bool()>& well) {
  ASSERT_TRUE(well());
  long total = 0;
  {
    const OneRefusal none(-1);
    life();
    total = OneRefusal::seen();
  }
  ASSERT_GT(total, runs);
  for (long run = 0; run < runs; ++run) {
    const long number = total * run / runs;
    SCOPED_TRACE(number);
    const auto begun = std::chrono::steady_clock::now();
    {
      const OneRefusal one(number);
      life();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begun, bound);
    ASSERT_TRUE(well()) << "with memory again";
  }
}

NoMemory::NoMemory() {
  none = true;
}
NoMemory::~NoMemory() {
  none = false;
}

}  // namespace tutti::test

void* operator new(std::size_t bytes) {
  if (tutti::test::refuses(bytes)) throw std::bad_alloc();
  if (void* const got = std::malloc(bytes == 0 ? 1 : bytes)) return got;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
