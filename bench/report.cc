#include "bench/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/datatypes.h"

namespace bench {
namespace {

void printTiming(const Timing& t) {
  char wrong[24] = "N/A";
  if (t.wrong) std::snprintf(wrong, sizeof wrong, "%llu", static_cast<unsigned long long>(*t.wrong));
  std::printf("  %7.2f  %6.2f  %6.2f  %5s", t.seconds * 1e6, t.algBandwidth, t.busBandwidth, wrong);
}

nlohmann::json timingJson(const Timing& t) {
  nlohmann::json j{{"time_us", t.seconds * 1e6}, {"algbw_GBps", t.algBandwidth}, {"busbw_GBps", t.busBandwidth}};
  if (t.wrong) j["wrong"] = *t.wrong;
  return j;
}

}  // namespace

void Report::header(const Shared& shared) {
  if (quiet()) return;
  int version = 0;
  ncclGetVersion(&version);
  const Options& o = options_;
  std::printf("# %s, library version %d\n", collective_.program, version);
  std::printf("# nProcess %d nThread %d nGpus %d minBytes %zu maxBytes %zu step: ", o.processes, o.threads, o.gpus,
              o.minBytes, o.maxBytes);
  if (o.stepFactor > 1) {
    std::printf("%g(factor)", o.stepFactor);
  } else {
    std::printf("%zu(bytes)", o.stepBytes);
  }
  std::printf(" warmup iters: %d iters: %d validation: %d\n#\n# Using devices\n", o.warmup, o.iterations, o.check);
  for (int r = 0; r < o.ranks(); ++r) {
    const auto& d = shared.devices[static_cast<std::size_t>(r)];
    std::printf("#  Rank %2d Pid %6d on %10s device %2d [0x%02x] %s\n", r, d.pid, d.host, d.device, d.busId, d.name);
  }
  std::printf("#\n# %57s %31s\n", "out-of-place", "in-place");
  std::printf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
  for (int i = 0; i < 2; ++i) std::printf("  %7s  %6s  %6s  %5s", "time", "algbw", "busbw", "#wrong");
  std::printf("\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
  for (int i = 0; i < 2; ++i) std::printf("  %7s  %6s  %6s  %5s", "(us)", "(GB/s)", "(GB/s)", "");
  std::printf("\n");
  std::fflush(stdout);
}

void Report::row(const Row& row) {
  rows_.push_back(row);
  if (quiet()) return;
  std::printf("  %10zu  %12zu  %8s  %6s  %6d", row.bytes, row.count, typeName(row.type),
              row.op == ncclNumOps ? "none" : opName(row.op), row.root);
  printTiming(row.outOfPlace);
  if (row.inPlace) printTiming(*row.inPlace);
  std::printf("\n");
  std::fflush(stdout);
}

double Report::averageBusBandwidth() const {
  double sum = 0;
  int n = 0;
  for (const Row& r : rows_) {
    sum += r.outOfPlace.busBandwidth;
    ++n;
    if (r.inPlace) {
      sum += r.inPlace->busBandwidth;
      ++n;
    }
  }
  return n == 0 ? 0 : sum / n;
}

std::uint64_t Report::totalWrong() const {
  std::uint64_t total = 0;
  for (const Row& r : rows_) {
    total += r.outOfPlace.wrong.value_or(0);
    if (r.inPlace) total += r.inPlace->wrong.value_or(0);
  }
  return total;
}

void Report::footer() {
  if (!quiet()) {
    std::printf("# Out of bounds values : %llu %s\n", static_cast<unsigned long long>(totalWrong()),
                totalWrong() == 0 ? "OK" : "FAILED");
    std::printf("# Avg bus bandwidth    : %g\n#\n", averageBusBandwidth());
  }
  if (options_.jsonFile.empty()) return;
  if (quiet()) {
    std::printf("%s\n", json().c_str());
    return;
  }
  if (std::FILE* file = std::fopen(options_.jsonFile.c_str(), "w")) {
    std::fprintf(file, "%s\n", json().c_str());
    std::fclose(file);
  } else {
    die(options_.jsonFile.c_str(), "cannot be written", __FILE__, __LINE__);
  }
}

std::string Report::json() const {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& r : rows_) {
    nlohmann::json j{{"bytes", r.bytes},
                     {"count", r.count},
                     {"type", typeName(r.type)},
                     {"root", r.root},
                     {"redop", r.op == ncclNumOps ? "none" : opName(r.op)},
                     {"out_of_place", timingJson(r.outOfPlace)}};
    if (r.inPlace) j["in_place"] = timingJson(*r.inPlace);
    rows.push_back(std::move(j));
  }
  const nlohmann::json all{{"program", collective_.program}, {"processes", options_.processes},
                           {"threads", options_.threads},    {"gpus", options_.gpus},
                           {"ranks", options_.ranks()},      {"iterations", options_.iterations},
                           {"wrong", totalWrong()},          {"average_busbw_GBps", averageBusBandwidth()},
                           {"results", std::move(rows)}};
  return all.dump(2);
}

}  // namespace bench
