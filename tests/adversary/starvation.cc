#include "starvation.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <new>
#include <stop_token>
#include <string>

#include "report.h"

namespace tutti::adversary {

namespace {

constexpr long kWorthTellingMs = 1000;

/// Milliseconds that a thread has been ready without running; 0 where the kernel does not count them. Takes no memory:
/// the process may have none left.
long waitedMs(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 100> text{};
  const ssize_t size = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  long long ran = 0;
  long long waited = 0;
  const bool counted = size > 0 && std::sscanf(text.data(), "%lld %lld", &ran, &waited) == 2;
  return counted ? static_cast<long>(waited / 1'000'000) : 0;
}

void tell(long ms) {
  if (ms < kWorthTellingMs) return;
  try {
    report(-1, "starved", std::to_string(ms));
  } catch (const std::bad_alloc&) {
    // The next gap, perhaps.
  }
}

void watch(const std::stop_token& stop) {
  constexpr const char* kOwn = "/proc/thread-self/schedstat";
  long before = waitedMs(kOwn);
  tell(before);
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const long now = waitedMs(kOwn);
    tell(now - before);
    before = now;
  }
}

}  // namespace

StarvationWatch::StarvationWatch() {
  tell(waitedMs("/proc/self/schedstat"));
  thread_ = std::jthread(watch);
}

}  // namespace tutti::adversary
