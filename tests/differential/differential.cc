// Random operations on random communicators, compared bit by bit with what the API defines: counts, types, operators,
// roots, places, alignments, streams, groups and graphs follow from a seed. tests/adversary/differential starts it with
// random settings.
//
//   differential --seed S [--operations N] [--ranks N] [--processes P] [--per-thread G] [--hosts H]
#include <sys/mman.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/world.h"
#include "differential/course.h"
#include "differential/judge.h"
#include "differential/player.h"

namespace {

using differential::Course;
using differential::Dice;
using differential::Layout;
using differential::Limits;
using differential::Player;
using differential::Round;

constexpr std::size_t kMostComms = 4;
constexpr std::size_t kSlack = 64 << 10;  // of an arena, for what lies between buffers

/// What was played, as rank 0 has seen it.
struct Tally {
  std::size_t operations = 0;
  std::size_t rounds = 0;
  std::size_t replayed = 0;  ///< operations, from graphs
  std::size_t bytes = 0;     ///< of the arenas
  std::array<std::size_t, differential::kFuncs> byFunc{};
};

/// In memory that all processes share.
struct Common {
  std::array<ncclUniqueId, kMostComms - 1> ids;  ///< of the communicators beside the first
  Tally tally;
};

struct Run {
  Layout layout;
  Course* course;
  Common* common;
  bool verbose;
};

void count(Tally& tally, const Round& round) {
  tally.operations += round.operations();
  ++tally.rounds;
  if (round.capture != differential::Capture::None) tally.replayed += round.operations();
  for (const auto& memory : round.after) tally.bytes += memory.size();
  for (const auto& group : round.groups) {
    for (const auto& operation : group.operations) ++tally.byFunc[static_cast<std::size_t>(operation.func)];
  }
}

/// Says what is wrong and ends the process: what comes after would be no news.
void judge(Player& player, const Layout& layout, const Round& round) {
  for (std::size_t i = 0; i < player.seats().size(); ++i) {
    const int rank = player.seats()[i].rank;
    const std::size_t bytes = round.after[static_cast<std::size_t>(rank)].size();
    const std::string wrong = findWrong(round, layout, rank, player.memory(i, bytes));
    if (wrong.empty()) continue;
    std::printf("WRONG: %s\n", wrong.c_str());
    std::fflush(stdout);
    _exit(1);
  }
}

void playAll(bench::Worker& worker, void* context) {
  Run& run = *static_cast<Run*>(context);
  if (worker.leads()) {
    for (std::size_t c = 1; c < run.layout.comms.size(); ++c) NCCL_CHECK(ncclGetUniqueId(&run.common->ids[c - 1]));
  }
  worker.barrier();
  Player player(worker, run.layout, run.common->ids.data());
  for (std::size_t number = 0;; ++number) {
    const auto turn = run.course->turn(number);
    if (!turn) return;
    if (run.verbose && worker.leads()) {
      std::printf("turn %zu: round %zu, capture %d\n", number, turn->round->number,
                  static_cast<int>(turn->round->capture));
      for (const auto& group : turn->round->groups)
        for (const auto& operation : group.operations) std::printf("  %s\n", describe(operation).c_str());
      std::fflush(stdout);
    }
    player.play(*turn->round);
    judge(player, run.layout, *turn->round);
    if (turn->last) player.forget(*turn->round);
    if (worker.leads()) count(run.common->tally, *turn->round);
  }
}

/// Communicators of all ranks and of some, in any order; each rank is in the first.
Layout makeLayout(Dice dice, int ranks) {
  Layout layout;
  layout.ranks = ranks;
  layout.streams = dice.below(3) + 1;
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  layout.comms.push_back(all);
  layout.blocking.push_back(true);
  const std::size_t others = dice.below(kMostComms);
  for (std::size_t i = 0; i < others; ++i) {
    std::vector<int> members = all;
    for (std::size_t k = members.size(); k > 1; --k) std::swap(members[k - 1], members[dice.below(k)]);
    if (dice.chance(50)) members.resize(dice.between(1, members.size()));
    layout.comms.push_back(members);
    layout.blocking.push_back(!dice.chance(25));
  }
  return layout;
}

/// A size that the environment sets, or the usual one.
std::size_t sizeOf(const char* variable, std::size_t usual) {
  const char* text = std::getenv(variable);
  return text == nullptr ? usual : static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

/// Bytes that fill a slot of each protocol, a line, a pack.
std::vector<std::size_t> borders(std::size_t longest) {
  std::vector<std::size_t> all{16, 120, 128, 512, 1024, 4096, 16384};
  all.push_back(sizeOf("NCCL_BUFFSIZE", 1 << 20) / 8);
  all.push_back(sizeOf("NCCL_LL_BUFFSIZE", 512 << 10) / 16);
  all.push_back(sizeOf("NCCL_LL128_BUFFSIZE", 4800 << 10) / 8 / 16 * 15);
  all.push_back(sizeOf("NCCL_P2P_NVL_CHUNKSIZE", 128 << 10));
  std::erase_if(all, [longest](std::size_t bytes) { return bytes > longest; });
  return all;
}

void enterHost(int process, int processes, int hosts) {
  setenv("NCCL_HOSTID", ("host" + std::to_string(process * hosts / processes)).c_str(), 1);
}

int report(const Run& run, unsigned long long seed, const bench::Options& options) {
  std::printf("differential: seed %llu: %zu operations on %d ranks, 0 wrong\n", seed, run.common->tally.operations,
              options.ranks());
  std::printf("tally: rounds=%zu replayed=%zu megabytes=%zu communicators=%zu", run.common->tally.rounds,
              run.common->tally.replayed, run.common->tally.bytes >> 20, run.layout.comms.size());
  for (int func = 0; func < differential::kFuncs; ++func) {
    std::printf(" %s=%zu", funcName(static_cast<differential::Func>(func)),
                run.common->tally.byFunc[static_cast<std::size_t>(func)]);
  }
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned long long seed = 1;
  std::size_t operations = 1000;
  Limits limits{8 << 20, 1 << 20, 25, {}};
  int ranks = 2;
  int hosts = 0;
  bool verbose = false;
  bench::Options options;
  CLI::App app{"differential: random operations against a plain reference"};
  app.add_option("--seed", seed, "what everything follows from");
  app.add_option("--operations", operations, "after so many it ends");
  app.add_option("--ranks", ranks, "in all")->check(CLI::Range(1, 8));
  app.add_option("--processes", options.processes, "that share the ranks evenly")->check(CLI::Range(1, 8));
  app.add_option("--per-thread", options.gpus, "ranks that each thread drives in groups")->check(CLI::Range(1, 8));
  app.add_option("--hosts", hosts, "that the processes take themselves to be on")->check(CLI::Range(1, 8));
  app.add_option("--arena", limits.arena, "bytes that the buffers of a rank take in a round")
      ->check(CLI::Range(std::size_t{64} << 10, std::size_t{1} << 30));
  app.add_option("--longest", limits.longest, "bytes that an operation takes of them");
  app.add_option("--captured", limits.captured, "rounds that are captured, of a hundred");
  app.add_flag("--verbose", verbose, "say what is done before it is done");
  CLI11_PARSE(app, argc, argv);
  if (ranks % (options.processes * options.gpus) != 0) {
    std::fprintf(stderr, "differential: %d ranks cannot be shared evenly by %d processes with %d ranks a thread\n",
                 ranks, options.processes, options.gpus);
    return 2;
  }
  options.threads = ranks / options.processes / options.gpus;
  options.maxBytes = limits.arena + kSlack;
  limits.borders = borders(limits.longest);
  if (hosts > 0) {
    options.enter = [processes = options.processes, hosts](int process) { enterHost(process, processes, hosts); };
  }
  void* shared = mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  Run run{makeLayout(Dice(seed * 3 + 1), ranks), nullptr, static_cast<Common*>(shared), verbose};
  Course course(seed, run.layout, limits, operations, options.threads);
  run.course = &course;
  const int code = bench::runWorld(options, playAll, &run);
  return code == 0 ? report(run, seed, options) : code;
}
