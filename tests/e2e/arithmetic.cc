// What all-reduce, reduce-scatter and reduce promise of numbers, for every data type and operation, ranks as threads,
// through the public API alone: integers are exact modulo 2^n and averages truncate; a number wins over a NaN; a rank's
// input is scaled by its own factor, which may lie on the host or on the device; sums of floats are as exact as
// rounding allows; and every rank of an all-reduce receives the same bits, whatever the bits of the input.
//
//   arithmetic [--ranks N] [--quick] [--only all_reduce,reduce_scatter,reduce]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/collective.h"
#include "bench/datatypes.h"
#include "bench/world.h"

namespace {

constexpr ncclRedOp_t kPreMulSum = ncclNumOps;  // here alone: stands for a user's operator
constexpr std::size_t kCounts[] = {3, 1021, 70001};
constexpr std::size_t kQuickCount = 1021;
constexpr std::size_t kLargest = 70001 + 64;     // beyond the largest vector, also rounded up to 64 ranks
constexpr std::size_t kScalarAt = kLargest * 8;  // of the send buffer, in bytes

enum class Input { AnyBits, Small };

struct Case {
  const bench::Collective* collective;
  ncclDataType_t type;
  ncclRedOp_t op;
  Input input;
  std::size_t count;  ///< of the vector that is reduced, a multiple of the ranks where it is scattered
  bool deviceScalar;
  int root;
};

struct Run {
  std::vector<Case> cases;
  std::vector<std::vector<char>> results;  ///< what each rank received in the case in progress
  std::atomic<std::uint64_t> failures{0};
};

const char* nameOf(ncclRedOp_t op) {
  return op == kPreMulSum ? "premulsum" : bench::opName(op);
}

/// Multiples of 1/8 up to 1 for floats, small whole numbers for integers.
double smallValue(ncclDataType_t type, std::size_t i, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const auto value = static_cast<double>((i * 7 + r * 5) % 17);
  return bench::isFloating(type) ? (value - 8) / 8 : value;
}

std::vector<char> makeInput(const Case& c, int rank) {
  const std::size_t size = bench::typeSize(c.type);
  std::vector<char> input(c.count * size);
  if (c.input == Input::Small) {
    for (std::size_t i = 0; i < c.count; ++i) bench::encode(c.type, smallValue(c.type, i, rank), input.data(), i);
    return input;
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(rank) * 1000 + static_cast<std::uint64_t>(c.type));
  for (std::size_t i = 0; i < input.size(); i += 8) {
    const std::uint64_t bits = random();
    std::memcpy(input.data() + i, &bits, std::min<std::size_t>(8, input.size() - i));
  }
  return input;
}

/// A factor that every type holds.
int factorOf(int rank) {
  return rank % 2 + 1;
}

// --- integers: everything modulo 2^64, cut to the type at the end

bool isSigned(ncclDataType_t type) {
  return type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
}

std::uint64_t loadInteger(ncclDataType_t type, const std::vector<char>& data, std::size_t i) {
  const std::size_t size = bench::typeSize(type);
  std::uint64_t value = 0;
  std::memcpy(&value, data.data() + i * size, size);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
  if (!isSigned(type)) return value;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

std::uint64_t combineIntegers(const Case& c, std::uint64_t a, std::uint64_t b) {
  if (c.op == ncclProd) return a * b;
  if (c.op != ncclMax && c.op != ncclMin) return a + b;
  const bool less = isSigned(c.type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  return less == (c.op == ncclMax) ? b : a;
}

bool integerIsRight(const Case& c, const std::vector<std::vector<char>>& inputs, std::size_t i,
                    const std::vector<char>& got) {
  const std::size_t size = bench::typeSize(c.type);
  std::uint64_t want = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    std::uint64_t own = loadInteger(c.type, inputs[r], i);
    if (c.op == kPreMulSum) own *= static_cast<std::uint64_t>(factorOf(static_cast<int>(r)));
    want = r == 0 ? own : combineIntegers(c, want, own);
  }
  std::vector<char> cut(size);
  std::memcpy(cut.data(), &want, size);
  if (c.op == ncclAvg) {
    const std::uint64_t sum = loadInteger(c.type, cut, 0);
    const auto n = static_cast<std::int64_t>(inputs.size());
    want = isSigned(c.type) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(sum) / n) : sum / inputs.size();
    std::memcpy(cut.data(), &want, size);
  }
  return std::memcmp(cut.data(), got.data() + i * size, size) == 0;
}

// --- floats

/// Max and min of arbitrary bits, NaN and infinities among them. 8-bit floats have no infinite results.
bool extremeIsRight(const Case& c, const std::vector<std::vector<char>>& inputs, std::size_t i, double got) {
  double want = std::nan("");
  for (const auto& input : inputs) {
    const double x = bench::decode(c.type, input.data(), i);
    if (std::isnan(x)) continue;  // (std::fmax lets a signalling NaN win)
    if (std::isnan(want) || (c.op == ncclMax ? x > want : x < want)) want = x;
  }
  if (std::isnan(want)) return std::isnan(got);
  if (bench::isFp8(c.type) && std::isinf(want) && inputs.size() > 1) want = std::copysign(57344.0, want);
  return got == want;
}

/// Sums of small values against the sum in binary64, with the error that rounding at every step may leave.
bool sumIsRight(const Case& c, const std::vector<std::vector<char>>& inputs, std::size_t i, double got) {
  double want = 0;
  double magnitude = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    double x = bench::decode(c.type, inputs[r].data(), i);
    if (c.op == kPreMulSum) x *= factorOf(static_cast<int>(r));
    if (c.op == ncclAvg) x /= static_cast<double>(inputs.size());
    want += x;
    magnitude += std::fabs(x);
  }
  return std::fabs(got - want) <= bench::tolerance(c.type, static_cast<int>(inputs.size()) + 1) * magnitude;
}

bool productIsRight(const Case& c, const std::vector<std::vector<char>>& inputs, std::size_t i, double got) {
  double want = 1;
  for (const auto& input : inputs) want *= bench::decode(c.type, input.data(), i);
  // Below the smallest normal number of a small type the error is absolute.
  const double floor = c.type == ncclFloat8e4m3                            ? 0x1p-6
                       : c.type == ncclFloat8e5m2 || c.type == ncclFloat16 ? 0x1p-14
                                                                           : 0;
  return std::fabs(got - want) <=
         bench::tolerance(c.type, static_cast<int>(inputs.size()) + 1) * std::fabs(want) + floor;
}

bool isRight(const Case& c, const std::vector<std::vector<char>>& inputs, std::size_t i, const std::vector<char>& got) {
  if (!bench::isFloating(c.type)) return integerIsRight(c, inputs, i, got);
  const double value = bench::decode(c.type, got.data(), i);
  if (c.op == ncclMax || c.op == ncclMin) return extremeIsRight(c, inputs, i, value);
  if (c.input == Input::AnyBits) return true;  // sums of anything: only that all ranks receive the same
  return c.op == ncclProd ? productIsRight(c, inputs, i, value) : sumIsRight(c, inputs, i, value);
}

void addCases(const bench::Collective& collective, int ranks, bool quick, std::vector<Case>& cases) {
  const auto n = static_cast<std::size_t>(ranks);
  for (int t = 0; t < ncclNumTypes; ++t) {
    const auto type = static_cast<ncclDataType_t>(t);
    for (int op = 0; op <= kPreMulSum; ++op) {
      for (const Input input : {Input::AnyBits, Input::Small}) {
        for (std::size_t count : kCounts) {
          if (quick && count != kQuickCount) continue;
          if (&collective == &bench::kReduceScatter) count = (count + n - 1) / n * n;
          const int root = static_cast<int>(count) % ranks;
          const auto redOp = static_cast<ncclRedOp_t>(op);
          cases.push_back({&collective, type, redOp, input, count, false, root});
          if (op == kPreMulSum && input == Input::Small)
            cases.push_back({&collective, type, redOp, input, count, true, root});
        }
      }
    }
  }
}

/// The user's operator of this rank, scaling by its own factor. One on the device gets its value after the operator was
/// made: it is read when the kernel runs.
ncclRedOp_t makeOperator(const Case& c, const bench::Rank& r) {
  char factor[8] = {};
  bench::encode(c.type, factorOf(r.rank), factor, 0);
  char* const onDevice = static_cast<char*>(r.send) + kScalarAt;
  void* const scalar = c.deviceScalar ? onDevice : factor;
  const ncclScalarResidence_t where = c.deviceScalar ? ncclScalarDevice : ncclScalarHostImmediate;
  if (c.deviceScalar) CUDA_CHECK(cudaMemset(onDevice, 0, sizeof factor));
  ncclRedOp_t op = ncclSum;
  NCCL_CHECK(ncclRedOpCreatePreMulSum(&op, scalar, c.type, where, r.comm));
  if (c.deviceScalar) CUDA_CHECK(cudaMemcpy(onDevice, factor, sizeof factor, cudaMemcpyHostToDevice));
  return op;
}

/// What this rank receives. The operator is gone before its kernel has run.
std::vector<char> reduce(bench::Worker& worker, const bench::Rank& r, const Case& c, const std::vector<char>& input) {
  const int ranks = worker.options().ranks();
  const bool scatters = c.collective == &bench::kReduceScatter;
  const std::size_t count = scatters ? c.count / static_cast<std::size_t>(ranks) : c.count;
  CUDA_CHECK(cudaMemcpy(r.send, input.data(), input.size(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(r.recv, 0xa5, input.size()));
  const ncclRedOp_t op = c.op == kPreMulSum ? makeOperator(c, r) : c.op;
  CUDA_CHECK(cudaDeviceSynchronize());
  worker.barrier();  // ranks may share a device, and what waits for all of it would wait for a kernel that waits for us
  NCCL_CHECK(c.collective->run({r.send, r.recv, count, c.type, op, c.root, r.rank, ranks, r.comm, r.stream}));
  if (c.op == kPreMulSum) NCCL_CHECK(ncclRedOpDestroy(op, r.comm));
  worker.synchronize();
  std::vector<char> result(count * bench::typeSize(c.type));
  CUDA_CHECK(cudaMemcpy(result.data(), r.recv, result.size(), cudaMemcpyDeviceToHost));
  return result;
}

/// Elements of the reduced vector that are wrong.
std::size_t countWrong(const Case& c, const std::vector<std::vector<char>>& results) {
  std::vector<std::vector<char>> inputs;
  for (int r = 0; r < static_cast<int>(results.size()); ++r) inputs.push_back(makeInput(c, r));
  std::vector<char> vector = results[c.collective == &bench::kReduce ? static_cast<std::size_t>(c.root) : 0];
  if (c.collective == &bench::kReduceScatter) {
    for (std::size_t r = 1; r < results.size(); ++r) vector.insert(vector.end(), results[r].begin(), results[r].end());
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < c.count; ++i) wrong += isRight(c, inputs, i, vector) ? 0 : 1;
  return wrong;
}

void runRank(bench::Worker& worker, void* context) {
  Run& run = *static_cast<Run*>(context);
  const bench::Rank& r = worker.ranks().front();
  const auto self = static_cast<std::size_t>(r.rank);
  CUDA_CHECK(cudaSetDevice(r.device));
  for (const Case& c : run.cases) {
    run.results[self] = reduce(worker, r, c, makeInput(c, r.rank));
    worker.barrier();
    // Rank 0 checks the vector, everybody else that it was given the same.
    std::size_t wrong = 0;
    if (r.rank == 0) {
      wrong = countWrong(c, run.results);
    } else if (c.collective == &bench::kAllReduce && run.results[self] != run.results[0]) {
      wrong = 1;
    }
    worker.barrier();
    if (wrong == 0) continue;
    ++run.failures;
    std::printf("WRONG: %s %s %s count %zu %s%s, rank %d: %s\n", c.collective->program, bench::typeName(c.type),
                nameOf(c.op), c.count, c.input == Input::AnyBits ? "any bits" : "small values",
                c.deviceScalar ? ", scalar on the device" : "", r.rank,
                r.rank == 0 ? (std::to_string(wrong) + " elements").c_str() : "other bits than rank 0");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options;
  bool quick = false;
  std::vector<std::string> only{"all_reduce", "reduce_scatter", "reduce"};
  options.threads = 2;
  CLI::App app{"arithmetic: every type and operation of the reducing collectives against its definition"};
  app.add_option("--ranks", options.threads, "ranks, one thread each")->check(CLI::Range(1, 64));
  app.add_flag("--quick", quick, "one length alone");
  app.add_option("--only", only, "these collectives alone")
      ->delimiter(',')
      ->check(CLI::IsMember({"all_reduce", "reduce_scatter", "reduce"}));
  CLI11_PARSE(app, argc, argv);
  options.maxBytes = kScalarAt + 64;
  Run run;
  for (const bench::Collective* collective : {&bench::kAllReduce, &bench::kReduceScatter, &bench::kReduce}) {
    for (const std::string& name : only) {
      if (name + "_perf" == collective->program) addCases(*collective, options.threads, quick, run.cases);
    }
  }
  run.results.resize(static_cast<std::size_t>(options.threads));
  const int exitCode = bench::runWorld(options, runRank, &run);
  std::printf("arithmetic: %zu cases on %d ranks, %llu wrong\n", run.cases.size(), options.threads,
              static_cast<unsigned long long>(run.failures.load()));
  return exitCode != 0 ? exitCode : (run.failures == 0 ? 0 : 1);
}
