// Joins many ranks as threads of one process, splits them in seven, and says how long both took:
// bootstrap_scale [ranks] [bound in seconds] [roots] [bound of the split in seconds] [and in seconds of processors].
// The latter holds beside other programs too.
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "bootstrap/kin.h"
#include "bootstrap/settings.h"

namespace {

using namespace tutti;

constexpr int kColors = 7;

struct Tally {
  std::atomic<int> failed{0};
  std::atomic<int> joined{0};
  std::atomic<bool> splitting{false};
  std::atomic<int> split{0};
};

void meet(std::atomic<int>& count, int nRanks) {
  ++count;
  while (count < nRanks) std::this_thread::sleep_for(milliseconds(5));
}

/// Every member of a color meets the others of it.
bool split(bootstrap::Bootstrap& parent, const bootstrap::BootstrapSettings& settings, Tally& tally, int nRanks) {
  while (!tally.splitting) std::this_thread::sleep_for(milliseconds(1));
  auto kin = parent.split(parent.rank() % kColors, -parent.rank(), milliseconds(0));
  std::unique_ptr<bootstrap::Bootstrap> child;
  if (kin.ok()) {
    bootstrap::JoinOptions options;
    options.settings = settings;
    auto joined = bootstrap::Bootstrap::join(options, std::move(kin).value());
    if (joined.ok()) child = std::move(joined).value();
  }
  const bool met = child && child->barrier().ok();
  meet(tally.split, nRanks);
  return met;
}

void oneRank(const std::vector<ncclUniqueId>& ids, int rank, int nRanks, const bootstrap::BootstrapSettings& settings,
             Tally& tally) {
  bootstrap::JoinOptions options;
  options.ids = ids;
  options.rank = rank;
  options.nRanks = nRanks;
  options.settings = settings;
  auto joined = bootstrap::Bootstrap::join(options);
  meet(tally.joined, nRanks);
  const bool good = joined.ok() && split(*joined.value(), settings, tally, nRanks) && joined.value()->barrier().ok();
  if (!good) ++tally.failed;
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
  const double splitBound = argc > 4 ? std::atof(argv[4]) : 30.0;
  const double splitCpuBound = argc > 5 ? std::atof(argv[5]) : 30.0;
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
  std::this_thread::sleep_for(milliseconds(50));  // all wait for this
  const auto splitStart = SteadyClock::now();
  const double cpuBefore = cpuSeconds();
  tally.splitting = true;
  while (tally.split < nRanks) std::this_thread::sleep_for(milliseconds(1));
  const double splitSeconds = secondsSince(splitStart);
  const double splitCpu = cpuSeconds() - cpuBefore;
  for (std::thread& thread : threads) thread.join();
  std::printf(
      "%d ranks, %d roots: joined in %.3f s, %.3f ms CPU per rank; split in %.3f s, %.3f s CPU; all gone after %.3f s; "
      "%d failed\n",
      nRanks, nRoots, seconds, cpu * 1000.0 / nRanks, splitSeconds, splitCpu, secondsSince(start), tally.failed.load());
  const bool fast = seconds < bound && splitSeconds < splitBound && splitCpu < splitCpuBound;
  return tally.failed == 0 && fast ? 0 : 1;
}
