// Every collective x type x op x count x alignment x in/out of place, ranks as threads, through the public API alone: runs
// on the software GPU and, from a bundle, on real ones.
//
//   conformance [--ranks N] [--quick] [--only all_reduce,all_gather]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/datatypes.h"
#include "bench/verify.h"
#include "bench/world.h"

namespace {

using bench::Call;
using bench::Collective;

std::size_t times(std::size_t count, int ranks) { return count * static_cast<std::size_t>(ranks); }
std::size_t same(std::size_t count, int) { return count; }
std::size_t zero(std::size_t, int) { return 0; }
double noBandwidth(int) { return 0; }

const Collective kAlltoAll{
    "AlltoAll", false, false, false, same, times, times, zero, zero,
    [](const Call& c) { return ncclAlltoAll(c.send, c.recv, c.count, c.type, c.comm, c.stream); }, noBandwidth,
    [](const Call& c, std::size_t block) { return Collective::Origin{static_cast<int>(block), times(c.count, c.rank)}; }};

const Collective kGather{
    "Gather", false, true, false, same, same, times, zero, zero,
    [](const Call& c) { return ncclGather(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream); }, noBandwidth,
    [](const Call& c, std::size_t block) {
      return Collective::Origin{c.rank == c.root ? static_cast<int>(block) : bench::kUntouched, 0};
    }};

const Collective kScatter{
    "Scatter", false, true, false, same, times, same, zero, zero,
    [](const Call& c) { return ncclScatter(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream); }, noBandwidth,
    [](const Call& c, std::size_t) { return Collective::Origin{c.root, times(c.count, c.rank)}; }};

struct Case {
  const Collective* collective;
  ncclDataType_t type;
  ncclRedOp_t op;
  std::size_t count;
  int root;
  std::size_t offset;  ///< elements by which buffers are moved off their alignment
  bool inPlace;
};

constexpr std::size_t kLargest = 3000017;  // float32: beyond all slots of a connection

std::vector<Case> makeCases(int ranks, bool quick) {
  std::vector<Case> cases;
  const std::vector<std::size_t> counts = quick ? std::vector<std::size_t>{1, 1021} : std::vector<std::size_t>{0, 1, 3, 1021, 65537};
  const std::vector<const Collective*> all{&bench::kAllReduce, &bench::kAllGather, &bench::kReduceScatter, &bench::kBroadcast,
                                           &bench::kReduce,    &bench::kSendRecv,  &kAlltoAll,             &kGather, &kScatter};
  for (const Collective* c : all) {
    for (int t = 0; t < ncclNumTypes; ++t) {
      const auto type = static_cast<ncclDataType_t>(t);
      for (int op = 0; op < (c->reduces ? ncclNumOps : 1); ++op) {
        const ncclRedOp_t redOp = c->reduces ? static_cast<ncclRedOp_t>(op) : ncclNumOps;
        for (std::size_t count : counts) {
          const int root = c->rooted ? static_cast<int>(count) % ranks : 0;
          for (const std::size_t offset : {0U, 1U}) {
            cases.push_back({c, type, redOp, count, root, offset, false});
            if (c->inPlace) cases.push_back({c, type, redOp, count, root, offset, true});
          }
        }
      }
    }
    if (!quick) cases.push_back({c, ncclFloat32, c->reduces ? ncclSum : ncclNumOps, kLargest / static_cast<std::size_t>(ranks), 0, 0, false});
  }
  return cases;
}

struct Run {
  std::vector<Case> cases;
  std::atomic<std::uint64_t> failures{0};
};

Call makeCall(const Case& c, const bench::Rank& r, int ranks) {
  const std::size_t size = bench::typeSize(c.type);
  char* recv = static_cast<char*>(r.recv) + c.offset * size;
  char* send = c.inPlace ? recv : static_cast<char*>(r.send) + c.offset * size;
  if (c.inPlace) {
    send += c.collective->inPlaceSend(c.count, r.rank) * size;
    recv += c.collective->inPlaceRecv(c.count, r.rank) * size;
  }
  return {send, recv, c.count, c.type, c.op, c.root, r.rank, ranks, r.comm, r.stream};
}

/// Fills, calls, waits, compares. Returns the wrong elements of this rank.
std::uint64_t runCase(bench::Worker& worker, bench::Rank& r, const Case& c) {
  const int ranks = worker.options().ranks();
  const Call call = makeCall(c, r, ranks);
  const std::size_t recvElements = c.collective->recvCount(c.count, ranks);
  CUDA_CHECK(cudaMemset(r.recv, 0xa5, (recvElements + 1) * bench::typeSize(c.type)));
  bench::fillInput(const_cast<void*>(call.send), c.collective->sendCount(c.count, ranks), call, r.rank);
  CUDA_CHECK(cudaDeviceSynchronize());
  worker.barrier();
  NCCL_CHECK(c.collective->run(call));
  worker.synchronize();
  return bench::countWrong(*c.collective, call, recvElements);
}

void runRank(bench::Worker& worker, void* context) {
  Run& run = *static_cast<Run*>(context);
  bench::Rank& r = worker.ranks().front();
  CUDA_CHECK(cudaSetDevice(r.device));
  for (const Case& c : run.cases) {
    const std::uint64_t wrong = runCase(worker, r, c);
    if (wrong == 0) continue;
    ++run.failures;
    std::printf("WRONG: %s %s %s count %zu root %d offset %zu %s, rank %d: %llu elements\n", c.collective->program,
                bench::typeName(c.type), c.op == ncclNumOps ? "" : bench::opName(c.op), c.count, c.root, c.offset,
                c.inPlace ? "in place" : "out of place", r.rank, static_cast<unsigned long long>(wrong));
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options;
  bool quick = false;
  std::vector<std::string> only;
  options.threads = 2;
  CLI::App app{"conformance: every collective, type, operation, count and alignment"};
  app.add_option("--ranks", options.threads, "ranks, one thread each")->check(CLI::Range(1, 64));
  app.add_flag("--quick", quick, "fewer counts");
  app.add_option("--only", only, "these collectives alone")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  options.maxBytes = static_cast<std::size_t>(options.threads) * (kLargest * sizeof(float) / static_cast<std::size_t>(options.threads) + 65537 * 8);
  Run run;
  run.cases = makeCases(options.threads, quick);
  if (!only.empty()) {
    std::erase_if(run.cases, [&](const Case& c) {
      return std::none_of(only.begin(), only.end(), [&](const std::string& name) {
        return c.collective->program == name || c.collective->program == name + "_perf";
      });
    });
  }
  const int exitCode = bench::runWorld(options, runRank, &run);
  std::printf("conformance: %zu cases on %d ranks, %llu wrong\n", run.cases.size(), options.threads,
              static_cast<unsigned long long>(run.failures.load()));
  return exitCode != 0 ? exitCode : (run.failures == 0 ? 0 : 1);
}
