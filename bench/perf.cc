#include "bench/perf.h"

#include <algorithm>
#include <chrono>

#include "bench/datatypes.h"
#include "bench/report.h"
#include "bench/verify.h"
#include "bench/world.h"

namespace bench {
namespace {

struct Job {
  const Collective& collective;
  Report& report;
};

/// One size, type and op in one of the two ways.
class Measurement {
 public:
  Measurement(Worker& worker, const Collective& collective, const Row& row, bool inPlace)
      : worker_(worker), collective_(collective), row_(row), inPlace_(inPlace) {}

  Timing run() {
    Timing timing;
    for (Rank& r : worker_.ranks()) prepare(r);
    worker_.barrier();
    callOnce();
    worker_.synchronize();
    if (worker_.options().check != 0) timing.wrong = verify();
    timing.seconds = time();
    timing.algBandwidth = timing.seconds > 0 ? static_cast<double>(row_.bytes) / timing.seconds / 1e9 : 0;
    timing.busBandwidth = timing.algBandwidth * collective_.busFactor(worker_.options().ranks());
    return timing;
  }

 private:
  Call call(const Rank& r) const {
    const std::size_t size = typeSize(row_.type);
    const int ranks = worker_.options().ranks();
    char* send = static_cast<char*>(inPlace_ ? r.recv : r.send);
    char* recv = static_cast<char*>(r.recv);
    if (inPlace_) {
      send += collective_.inPlaceSend(row_.count, r.rank) * size;
      recv += collective_.inPlaceRecv(row_.count, r.rank) * size;
    }
    const int root = collective_.rooted ? row_.root : 0;
    return {send, recv, row_.count, row_.type, row_.op, root, r.rank, ranks, r.comm, r.stream};
  }

  void prepare(Rank& r) {
    const Call c = call(r);
    CUDA_CHECK(cudaSetDevice(r.device));
    if (worker_.options().check != 0) {
      CUDA_CHECK(cudaMemset(r.recv, 0xa5, collective_.recvCount(row_.count, c.ranks) * typeSize(row_.type)));
      fillInput(const_cast<void*>(c.send), collective_.sendCount(row_.count, c.ranks), c, r.rank);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  /// What is timed.
  void timedCall() {
    writeInputs();
    callOnce();
  }

  /// With --fresh: between calls a program writes what the next one sends, out of caches in which peers have read it.
  void writeInputs() {
    if (!worker_.options().fresh) return;
    for (Rank& r : worker_.ranks()) {
      const Call c = call(r);
      CUDA_CHECK(cudaSetDevice(r.device));
      CUDA_CHECK(cudaMemsetAsync(const_cast<void*>(c.send), 0,
                                 collective_.sendCount(row_.count, c.ranks) * typeSize(row_.type), r.stream));
    }
  }

  void callOnce() {
    callGroup();
    if (worker_.options().blockingCalls) worker_.synchronize();
  }

  void callGroup() {
    NCCL_CHECK(ncclGroupStart());
    for (Rank& r : worker_.ranks()) {
      CUDA_CHECK(cudaSetDevice(r.device));
      NCCL_CHECK(collective_.run(call(r)));
    }
    NCCL_CHECK(ncclGroupEnd());
  }

  std::uint64_t verify() {
    Shared& shared = worker_.shared();
    if (worker_.leads()) shared.wrong = 0;
    worker_.barrier();
    for (Rank& r : worker_.ranks()) {
      CUDA_CHECK(cudaSetDevice(r.device));
      shared.wrong += countWrong(collective_, call(r), collective_.recvCount(row_.count, worker_.options().ranks()));
    }
    worker_.barrier();
    return shared.wrong;
  }

  /// Seconds per call: the median of --repeat timings.
  double time() {
    const Options& o = worker_.options();
    for (int i = 0; i < o.warmup; ++i) timedCall();
    worker_.synchronize();
    std::vector<double> seconds;
    seconds.reserve(static_cast<std::size_t>(o.repeats));
    for (int i = 0; i < o.repeats; ++i) seconds.push_back(timeOnce());
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }

  /// Seconds per call, over ranks as -a says.
  double timeOnce() {
    const Options& o = worker_.options();
    const double elapsed = o.graphLaunches > 0 ? replay() : call();
    for (Rank& r : worker_.ranks()) worker_.shared().seconds[static_cast<std::size_t>(r.rank)] = elapsed;
    worker_.barrier();
    const auto& seconds = worker_.shared().seconds;
    const auto end = seconds.begin() + o.ranks();
    double result = seconds[0];
    if (o.average == 1) {
      result = 0;
      for (auto s = seconds.begin(); s != end; ++s) result += *s / o.ranks();
    }
    if (o.average == 2) result = *std::min_element(seconds.begin(), end);
    if (o.average == 3) result = *std::max_element(seconds.begin(), end);
    worker_.barrier();
    return result;
  }

  static double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// Seconds per call.
  double call() {
    worker_.barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < worker_.options().iterations; ++i) timedCall();
    worker_.synchronize();
    return since(start) / worker_.options().iterations;
  }

  /// Seconds per call when the calls are in a graph, one graph per rank.
  double replay() {
    const Options& o = worker_.options();
    std::vector<cudaGraphExec_t> graphs = capture();
    worker_.barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < o.graphLaunches; ++i) {
      for (std::size_t r = 0; r < graphs.size(); ++r) {
        CUDA_CHECK(cudaSetDevice(worker_.ranks()[r].device));
        CUDA_CHECK(cudaGraphLaunch(graphs[r], worker_.ranks()[r].stream));
      }
      if (o.blockingCalls) worker_.synchronize();
    }
    worker_.synchronize();
    const double seconds = since(start) / o.graphLaunches / o.iterations;
    worker_.barrier();
    for (cudaGraphExec_t graph : graphs) CUDA_CHECK(cudaGraphExecDestroy(graph));
    return seconds;
  }

  std::vector<cudaGraphExec_t> capture() {
    for (Rank& r : worker_.ranks()) {
      CUDA_CHECK(cudaSetDevice(r.device));
      CUDA_CHECK(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
    }
    for (int i = 0; i < worker_.options().iterations; ++i) {
      writeInputs();
      callGroup();
    }
    // While a stream of this thread captures, the driver makes no graph of another ready.
    std::vector<cudaGraph_t> captured;
    for (Rank& r : worker_.ranks()) {
      CUDA_CHECK(cudaSetDevice(r.device));
      CUDA_CHECK(cudaStreamEndCapture(r.stream, &captured.emplace_back()));
    }
    std::vector<cudaGraphExec_t> graphs;
    for (std::size_t i = 0; i < captured.size(); ++i) {
      CUDA_CHECK(cudaSetDevice(worker_.ranks()[i].device));
      CUDA_CHECK(cudaGraphInstantiateWithFlags(&graphs.emplace_back(), captured[i], 0));
      CUDA_CHECK(cudaGraphDestroy(captured[i]));
    }
    return graphs;
  }

  Worker& worker_;
  const Collective& collective_;
  const Row& row_;
  const bool inPlace_;
};

void runSize(Worker& worker, Job& job, Row row, std::size_t bytes, std::uint64_t* wrong) {
  const int ranks = worker.options().ranks();
  row.count = job.collective.count(bytes / typeSize(row.type), ranks);
  const std::size_t elements =
      std::max(job.collective.sendCount(row.count, ranks), job.collective.recvCount(row.count, ranks));
  row.bytes = elements * typeSize(row.type);
  row.outOfPlace = Measurement(worker, job.collective, row, false).run();
  if (job.collective.inPlace) row.inPlace = Measurement(worker, job.collective, row, true).run();
  *wrong += row.outOfPlace.wrong.value_or(0) + (row.inPlace ? row.inPlace->wrong.value_or(0) : 0);
  if (worker.leads()) job.report.row(row);
}

void runWorker(Worker& worker, void* context) {
  Job& job = *static_cast<Job*>(context);
  const Options& o = worker.options();
  worker.barrier();
  if (worker.leads()) job.report.header(worker.shared());
  const std::vector<ncclRedOp_t> none{ncclNumOps};
  std::uint64_t wrong = 0;
  for (ncclDataType_t type : o.types) {
    for (ncclRedOp_t op : job.collective.reduces ? o.ops : none) {
      Row row;
      row.type = type;
      row.op = op;
      row.root = job.collective.rooted ? o.root : -1;
      for (std::size_t bytes = o.minBytes; bytes <= o.maxBytes;) {
        runSize(worker, job, row, bytes, &wrong);
        bytes = o.stepFactor > 1
                    ? std::max(static_cast<std::size_t>(static_cast<double>(bytes) * o.stepFactor), bytes + 1)
                    : bytes + std::max<std::size_t>(o.stepBytes, 1);
      }
    }
  }
  worker.barrier();
  if (!worker.leads()) return;
  worker.shared().wrong = wrong;
  job.report.footer();
}

}  // namespace

int runPerf(const Collective& collective, int argc, char** argv) {
  Options options;
  int exitCode = 0;
  if (!parseOptions(argc, argv, collective.program, &options, &exitCode)) return exitCode;
  Report report(options, collective);
  Job job{collective, report};
  return runWorld(options, runWorker, &job);
}

}  // namespace bench
