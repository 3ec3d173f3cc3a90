// Item stress: flags that arrive without their data, counted.
#include "bench/device_micro/bench.h"
#include "bench/device_micro/params.h"

namespace micro {

namespace {

struct Test {
  const char* kernel;
  const char* name;
  const char* text;
  bool ordered;
  bool mustHold;  ///< nothing may be torn or stale: the library relies on it
};

constexpr Test kTests[] = {
    {"stress_LL128", "LL128 lines", "LL128: lines of 128 bytes by 8 lanes", true, true},
    {"stress_LL", "LL words", "LL: words of 8 bytes, two by one access", true, true},
    {"stress_block_messages", "block messages, shipped", "messages of a block, st.release and ld.acquire", true, true},
    {"stress_thread_messages", "thread messages, shipped", "messages of threads, st.release and ld.acquire", true,
     true},
    {"stress_block_messages", "block messages, no fence", "messages of a block, all relaxed (not shipped)", false,
     false},
    {"stress_thread_messages", "thread messages, no fence", "messages of threads, all relaxed (not shipped)", false,
     false},
};

StressCounts sum(const std::vector<StressCounts>& pairs) {
  StressCounts all{};
  for (const StressCounts& pair : pairs) {
    all.checked += pair.checked;
    all.fresh += pair.fresh;
    all.torn += pair.torn;
    all.mixed += pair.mixed;
    all.rounds += pair.rounds;
    all.timedOut += pair.timedOut;
  }
  return all;
}

void judge(Bench& bench, const Test& test, const StressCounts& all) {
  const std::string name = test.name;
  if (test.mustHold && all.torn != 0)
    bench.report.failure(name + ": " + std::to_string(all.torn) + " flags came without their data");
  if (all.timedOut != 0)
    bench.report.failure(name + ": " + std::to_string(all.timedOut) + " threads waited longer than the limit");
  if (all.fresh == 0) bench.report.failure(name + ": the readers saw nothing of what was written");
}

}  // namespace

void runStress(Bench& bench) {
  const unsigned pairs = bench.quick() ? 1 : std::max(1u, bench.blocks(132) / 2);
  const unsigned threads = bench.quick() ? 64 : kStressThreads;
  Memory data(Memory::Place::Device, pairs * kStressBytes);
  Memory flags(Memory::Place::Device, pairs * kStressFlagWords * sizeof(std::uint64_t));
  Memory counts(Memory::Place::Device, pairs * sizeof(StressCounts));
  bench.report.line(
      "stress: %u pairs of blocks of %u threads; what readers found (torn or stale: a flag without its data)", pairs,
      threads);
  bench.report.line("  %-48s %12s %12s %14s %12s", "", "looked at", "new", "torn or stale", "mixed, fine");
  for (const Test& test : kTests) {
    if (bench.outOfTime(test.name)) continue;
    data.clear();
    flags.clear();
    counts.clear();
    StressParams params{};
    params.data = data.get();
    params.flags = flags.get<std::uint64_t>();
    params.rounds = bench.quick() ? 30 : 50000;
    params.limit = bench.quick() ? bench.spinLimit() : 300'000'000;
    params.spinLimit = bench.spinLimit();
    params.ordered = test.ordered ? 1 : 0;
    params.counts = counts.get<StressCounts>();
    const double microseconds = bench.gpu.run(test.kernel, {2 * pairs, threads}, params);
    const StressCounts all = sum(counts.read<StressCounts>(pairs));
    bench.report.result({{"test", test.name},
                         {"must_hold", test.mustHold},
                         {"pairs", pairs},
                         {"threads", threads},
                         {"checked", all.checked},
                         {"fresh", all.fresh},
                         {"torn", all.torn},
                         {"mixed", all.mixed},
                         {"rounds", all.rounds},
                         {"timed_out", all.timedOut},
                         {"microseconds", microseconds}});
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    bench.report.line("  %-48s %12llu %12llu %14llu %12llu", test.text, number(all.checked), number(all.fresh),
                      number(all.torn), number(all.mixed));
    judge(bench, test, all);
  }
}

}  // namespace micro
