// Joins again and again while another process floods the root's port with strangers, and says what they cost:
// bootstrap_besieged [inits] [strangers per second] [held connections] [manner] [addresses].
// Manner: silent, garbage, head, replay or knock (strangers.h). Fails where an init does, or where there were more than
// 64 descriptors at any time.
//
// The inits use NCCL_COMM_ID, for then the port is known. Rank 0, and the root with it, waits for the others for a
// while in which strangers can gather; the time counts from when the others begin. First it is measured without
// strangers.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/comm_key.h"
#include "bootstrap/join_options.h"
#include "bootstrap/settings.h"
#include "bootstrap/unique_id.h"
#include "strangers.h"

namespace {

using namespace tutti;

constexpr int kRanks = 4;
constexpr milliseconds kGathering{150};
/// Those of the ranks included.
constexpr int kMostDescriptors = 64;

struct Outcome {
  std::vector<double> milliseconds;
  int failed = 0;
  double cpu = 0;
  double seconds = 0;
};

Outcome joinAgainAndAgain(int inits, const bootstrap::BootstrapSettings& settings) {
  Outcome outcome;
  const double cpu = test::cpuSeconds();
  const auto start = SteadyClock::now();
  for (int i = 0; i < inits; ++i) {
    auto begin = SteadyClock::now();
    std::atomic<int> failed{0};
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const std::vector<ncclUniqueId> ids{bootstrap::createUniqueId(settings).value()};
        bootstrap::JoinOptions options;
        options.ids = ids;
        options.rank = rank;
        options.nRanks = kRanks;
        options.settings = settings;
        auto joined = bootstrap::Bootstrap::join(options);
        if (joined.ok() && joined.value()->barrier().ok()) return;
        std::printf("rank %d: %s\n", rank, lastErrorText());
        ++failed;
      });
      if (rank > 0) continue;
      std::this_thread::sleep_for(kGathering);
      begin = SteadyClock::now();
    }
    for (std::thread& rank : ranks) rank.join();
    outcome.failed += failed > 0 ? 1 : 0;
    outcome.milliseconds.push_back(secondsSince(begin) * 1e3);
  }
  outcome.cpu = test::cpuSeconds() - cpu;
  outcome.seconds = secondsSince(start);
  std::sort(outcome.milliseconds.begin(), outcome.milliseconds.end());
  return outcome;
}

void print(const char* what, const Outcome& outcome) {
  std::printf("%-18s %d of %zu inits failed; median %.1f ms, longest %.1f ms; %.1f %% of a CPU\n", what, outcome.failed,
              outcome.milliseconds.size(), outcome.milliseconds[outcome.milliseconds.size() / 2],
              outcome.milliseconds.back(), 100.0 * outcome.cpu / outcome.seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const int inits = argc > 1 ? std::atoi(argv[1]) : 100;
  test::Siege siege;
  if (argc > 2) siege.perSecond = std::atoi(argv[2]);
  if (argc > 3) siege.held = std::atoi(argv[3]);
  if (argc > 4) siege.manner = test::mannerOf(argv[4]);
  if (argc > 5) siege.addresses = std::atoi(argv[5]);
  const test::Reserved reserved = test::reservePort();
  if (!reserved.socket.valid()) {
    std::printf("no port is free: %s\n", lastErrorText());
    return 1;
  }
  siege.at = reserved.at;
  bootstrap::BootstrapSettings settings;
  settings.commId = "127.0.0.1:" + std::to_string(siege.at.port());
  settings.commKey = "words that are shared";
  settings.timeout = milliseconds(60'000);
  const Outcome quiet = joinAgainAndAgain(inits, settings);
  print("without strangers:", quiet);
  const auto id = bootstrap::decodeUniqueId(bootstrap::createUniqueId(settings).value()).value();
  const auto purpose = bootstrap::Purpose::CheckIn;
  siege.overheard =
      bootstrap::ClientHandshake(bootstrap::rootKey(id, settings.commKey), purpose, 1, bootstrap::kRootRank).hello();
  const int before = test::descriptors();
  auto strangers = std::make_unique<test::Strangers>(siege);
  std::atomic<bool> done = false;
  std::atomic<int> most{0};
  std::thread counter([&] {
    while (!done) {
      most = std::max(most.load(), test::descriptors() - before);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  const Outcome besieged = joinAgainAndAgain(inits, settings);
  done = true;
  counter.join();
  strangers.reset();
  print("besieged:", besieged);
  std::printf("descriptors at most, those of %d ranks included: %d\n", kRanks, most.load());
  return quiet.failed + besieged.failed == 0 && most <= kMostDescriptors ? 0 : 1;
}
