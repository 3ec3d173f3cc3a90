// How long a cache line takes from one processor to another: on a virtual machine that says where its processors are at
// the moment, which copies through sockets and shared memory depend on. Prints nanoseconds one way, "-" where the
// process may run on one processor only.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kTurns = 20'000;
constexpr int kRounds = 9;

std::vector<int> processors() {
  cpu_set_t set;
  std::vector<int> all;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
  }
  return all;
}

void runOn(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof(one), &one); error != 0) {
    std::fprintf(stderr, "cache_line: cannot run on processor %d: %s\n", cpu, std::strerror(error));
    std::_Exit(1);  // the other thread may be waiting for this one
  }
}

void awaitValue(const std::atomic<int>& line, int value) {
  while (line.load(std::memory_order_acquire) != value) {
  }
}

double nanosecondsOneWay(int here, int there) {
  alignas(128) std::atomic<int> line{0};
  std::thread peer([&] {
    runOn(there);
    for (int turn = 0; turn < kTurns; ++turn) {
      awaitValue(line, 2 * turn + 1);
      line.store(2 * turn + 2, std::memory_order_release);
    }
  });
  runOn(here);
  const auto begin = std::chrono::steady_clock::now();
  for (int turn = 0; turn < kTurns; ++turn) {
    line.store(2 * turn + 1, std::memory_order_release);
    awaitValue(line, 2 * turn + 2);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  peer.join();
  return took.count() / (2.0 * kTurns);
}

}  // namespace

int main() {
  const std::vector<int> all = processors();
  if (all.size() < 2) {
    std::puts("-");
    return 0;
  }
  std::array<double, kRounds> times{};
  for (double& time : times) time = nanosecondsOneWay(all[0], all[1]);
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  std::printf("%.0f\n", times[kRounds / 2]);
}
