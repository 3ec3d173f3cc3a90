#include "starvation.h"

#include <chrono>
#include <fstream>
#include <stop_token>
#include <string>

#include "report.h"

namespace tutti::adversary {

namespace {

constexpr long kWorthTellingMs = 1000;

/// Milliseconds that a thread has been ready without running; 0 where the kernel does not count them.
long waitedMs(const char* path) {
  std::ifstream file(path);
  long long ran = 0;
  long long waited = 0;
  return file >> ran >> waited ? static_cast<long>(waited / 1'000'000) : 0;
}

void tell(long ms) {
  if (ms >= kWorthTellingMs) report(-1, "starved", std::to_string(ms));
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
