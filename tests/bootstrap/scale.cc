// Joins many ranks as threads of one process and says how long it took: bootstrap_scale [ranks] [bound in seconds]
// [roots].
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "bootstrap/settings.h"

namespace {

using namespace tutti;

struct Tally {
  std::atomic<int> failed{0};
  std::atomic<int> joined{0};
};

void oneRank(const std::vector<ncclUniqueId>& ids, int rank, int nRanks, const bootstrap::BootstrapSettings& settings,
             Tally& tally) {
  bootstrap::JoinOptions options;
  options.ids = ids;
  options.rank = rank;
  options.nRanks = nRanks;
  options.settings = settings;
  auto joined = bootstrap::Bootstrap::join(options);
  ++tally.joined;
  while (tally.joined < nRanks) std::this_thread::sleep_for(milliseconds(5));
  if (!joined.ok() || !joined.value()->barrier().ok()) ++tally.failed;
}

double cpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  const int nRanks = argc > 1 ? std::atoi(argv[1]) : 1000;
  const double bound = argc > 2 ? std::atof(argv[2]) : 30.0;
  const int nRoots = argc > 3 ? std::atoi(argv[3]) : 1;
  bootstrap::BootstrapSettings settings;
  settings.interfaceNames = "lo";
  settings.timeout = milliseconds(60'000);
  Tally tally;
  const auto start = SteadyClock::now();
  std::vector<ncclUniqueId> ids;
  for (int i = 0; i < nRoots; ++i) ids.push_back(bootstrap::createUniqueId(settings).value());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nRanks; ++rank) {
    threads.emplace_back(oneRank, std::cref(ids), rank, nRanks, std::cref(settings), std::ref(tally));
  }
  while (tally.joined < nRanks) std::this_thread::sleep_for(milliseconds(1));
  const double seconds = secondsSince(start);
  const double cpu = cpuSeconds();
  for (std::thread& thread : threads) thread.join();
  std::printf("%d ranks, %d roots: joined in %.3f s, %.3f ms CPU per rank; all gone after %.3f s; %d failed\n", nRanks,
              nRoots, seconds, cpu * 1000.0 / nRanks, secondsSince(start), tally.failed.load());
  return tally.failed == 0 && seconds < bound ? 0 : 1;
}
