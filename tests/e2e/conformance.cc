// Every collective x type x op x count x alignment x in/out of place/both at once, ranks as threads, through the public
// API alone: runs on the software GPU and, from a bundle, on real ones. Results must be right, and nothing else be
// written: no input, no byte beside an output, no output of a rank that receives nothing.
//
//   conformance [--ranks N] [--quick] [--only all_reduce,all_gather] [--types int8,float]
//               [--inside PID,PID,...] [--hosts N [--threads]] [--registered all|odd]
//
// With --registered the buffers are registered with the communicator: on all ranks, or on those with an odd number.
// With --hosts each rank is a process, which takes one of N hosts for its own (NCCL_HOSTID); with --threads each host
// is a process. With --inside there is one process of ranks for each PID, in that one's network, host name and mounts.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bench/datatypes.h"
#include "bench/verify.h"
#include "bench/world.h"

namespace {

using bench::Call;
using bench::Collective;

constexpr unsigned char kFiller = 0xa5;
constexpr std::size_t kGuardBytes = 64;  // that must stay as they are behind an output

const std::vector<const Collective*> kCollectives{&bench::kAllReduce, &bench::kAllGather, &bench::kReduceScatter,
                                                  &bench::kBroadcast, &bench::kReduce,    &bench::kSendRecv,
                                                  &bench::kAlltoAll,  &bench::kGather,    &bench::kScatter};

/// Mixed: ranks with an odd number in place, the others not.
enum class Place { Out, In, Mixed };
constexpr std::array<const char*, 3> kPlaceNames{"out of place", "in place", "mixed in and out of place"};

struct Case {
  const Collective* collective;
  ncclDataType_t type;
  ncclRedOp_t op;
  std::size_t count;
  int root;
  std::size_t offset;  ///< elements by which buffers are moved off their alignment
  Place place;
  bool inPlace(int rank) const { return place == Place::In || (place == Place::Mixed && rank % 2 == 1); }
};

constexpr std::size_t kLargestBytes = 12'000'068;  // shared by the ranks; on the software GPU still beyond all slots

struct Selection {
  std::vector<const Collective*> collectives;
  std::vector<std::string> types;  ///< empty: all
  bool quick = false;
  std::vector<std::size_t> counts;  ///< none: the usual ones
  bool has(ncclDataType_t type) const {
    return types.empty() || std::find(types.begin(), types.end(), bench::typeName(type)) != types.end();
  }
};

std::vector<Place> placesOf(const Collective& c) {
  return c.inPlace ? std::vector{Place::Out, Place::In, Place::Mixed} : std::vector{Place::Out};
}

/// Vectors that go through the slots of a connection several times: one for each kind of kernel and place.
void addLargest(const Collective& c, int ranks, const Selection& selection, std::vector<Case>& cases) {
  const auto add = [&](ncclDataType_t type, ncclRedOp_t op) {
    if (!selection.has(type)) return;
    const std::size_t count = kLargestBytes / bench::typeSize(type) / static_cast<std::size_t>(ranks);
    for (const Place place : placesOf(c)) cases.push_back({&c, type, op, count, 0, 0, place});
  };
  if (!c.reduces) return add(ncclFloat32, ncclNumOps);
  add(ncclFloat32, ncclSum);
  add(ncclBfloat16, ncclMax);
  add(ncclInt64, ncclAvg);
}

std::vector<Case> makeCases(const Selection& selection, int ranks) {
  std::vector<Case> cases;
  std::vector<std::size_t> counts = selection.counts;
  if (counts.empty())
    counts = selection.quick ? std::vector<std::size_t>{1, 1021} : std::vector<std::size_t>{0, 1, 3, 1021, 65537};
  for (const Collective* c : selection.collectives) {
    for (int t = 0; t < ncclNumTypes; ++t) {
      const auto type = static_cast<ncclDataType_t>(t);
      if (!selection.has(type)) continue;
      for (int op = 0; op < (c->reduces ? ncclNumOps : 1); ++op) {
        const ncclRedOp_t redOp = c->reduces ? static_cast<ncclRedOp_t>(op) : ncclNumOps;
        for (std::size_t count : counts) {
          const int root = c->rooted ? static_cast<int>(count) % ranks : 0;
          for (const std::size_t offset : {0U, 1U}) {
            for (const Place place : placesOf(*c)) {
              // What ranks do at different places meets in vectors of some length, and needs no second alignment.
              if (place == Place::Mixed && (offset == 0 || count < 1000)) continue;
              cases.push_back({c, type, redOp, count, root, offset, place});
            }
          }
        }
      }
    }
    if (!selection.quick && selection.counts.empty()) addLargest(*c, ranks, selection, cases);
  }
  return cases;
}

struct Run {
  std::vector<Case> cases;
  std::string registered;  ///< "", "all" or "odd"
  bool registers(int rank) const { return registered == "all" || (registered == "odd" && rank % 2 == 1); }
};

/// A rank's buffers, registered while it lives.
class Registered {
 public:
  Registered(const bench::Rank& r, std::size_t bytes) : comm_(r.comm) {
    NCCL_CHECK(ncclCommRegister(comm_, r.send, bytes, &send_));
    NCCL_CHECK(ncclCommRegister(comm_, r.recv, bytes, &recv_));
  }
  Registered(const Registered&) = delete;
  ~Registered() {
    NCCL_CHECK(ncclCommDeregister(comm_, send_));
    NCCL_CHECK(ncclCommDeregister(comm_, recv_));
  }

 private:
  ncclComm_t comm_;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

Call makeCall(const Case& c, const bench::Rank& r, int ranks) {
  const std::size_t size = bench::typeSize(c.type);
  char* recv = static_cast<char*>(r.recv) + c.offset * size;
  const bool inPlace = c.inPlace(r.rank);
  char* send = inPlace ? recv : static_cast<char*>(r.send) + c.offset * size;
  if (inPlace) {
    send += c.collective->inPlaceSend(c.count, r.rank) * size;
    recv += c.collective->inPlaceRecv(c.count, r.rank) * size;
  }
  return {send, recv, c.count, c.type, c.op, c.root, r.rank, ranks, r.comm, r.stream};
}

/// Bytes of device memory that are not kFiller.
std::uint64_t countOverwritten(const char* device, std::size_t bytes) {
  std::vector<unsigned char> got(bytes);
  CUDA_CHECK(cudaMemcpy(got.data(), device, bytes, cudaMemcpyDeviceToHost));
  return bytes - static_cast<std::size_t>(std::count(got.begin(), got.end(), kFiller));
}

/// What was written that is none of this rank's results: an input in another buffer, what surrounds the `bytes` bytes
/// of the output (or of what input and output share), and an output of which nothing is promised.
std::uint64_t countStray(const Case& c, const Call& call, const bench::Rank& r, std::size_t bytes) {
  const auto* received = static_cast<const char*>(r.recv);
  const std::size_t before = c.offset * bench::typeSize(c.type);
  std::uint64_t wrong = countOverwritten(received, before) + countOverwritten(received + before + bytes, kGuardBytes);
  if (c.inPlace(r.rank)) return wrong;
  wrong += bench::countChanged(call, c.collective->sendCount(c.count, call.ranks));
  if (c.collective->origin(call, 0).rank == bench::kUntouched) wrong += countOverwritten(received + before, bytes);
  return wrong;
}

/// Fills, calls, waits, compares. Returns the wrong elements of this rank.
std::uint64_t runCase(bench::Worker& worker, bench::Rank& r, const Case& c) {
  const int ranks = worker.options().ranks();
  const Call call = makeCall(c, r, ranks);
  const std::size_t size = bench::typeSize(c.type);
  const std::size_t sendElements = c.collective->sendCount(c.count, ranks);
  const std::size_t recvElements = c.collective->recvCount(c.count, ranks);
  const std::size_t bytes = (c.inPlace(r.rank) ? std::max(sendElements, recvElements) : recvElements) * size;
  CUDA_CHECK(cudaMemset(r.recv, kFiller, c.offset * size + bytes + kGuardBytes));
  bench::fillInput(const_cast<void*>(call.send), sendElements, call, r.rank);
  CUDA_CHECK(cudaDeviceSynchronize());
  worker.barrier();
  NCCL_CHECK(c.collective->run(call));
  worker.synchronize();
  return bench::countWrong(*c.collective, call, recvElements) + countStray(c, call, r, bytes);
}

void runRank(bench::Worker& worker, void* context) {
  const Run& run = *static_cast<const Run*>(context);
  bench::Rank& r = worker.ranks().front();
  CUDA_CHECK(cudaSetDevice(r.device));
  std::optional<Registered> registered;
  if (run.registers(r.rank)) registered.emplace(r, worker.options().maxBytes);
  for (const Case& c : run.cases) {
    const std::uint64_t wrong = runCase(worker, r, c);
    if (wrong == 0) continue;
    ++worker.shared().wrong;
    std::printf("WRONG: %s %s %s count %zu root %d offset %zu %s, rank %d: %llu elements\n", c.collective->program,
                bench::typeName(c.type), c.op == ncclNumOps ? "" : bench::opName(c.op), c.count, c.root, c.offset,
                kPlaceNames[static_cast<std::size_t>(c.place)], r.rank, static_cast<unsigned long long>(wrong));
  }
  worker.barrier();
  if (!worker.leads()) return;
  std::printf("conformance: %zu cases on %d ranks, %llu wrong\n", run.cases.size(), worker.options().ranks(),
              static_cast<unsigned long long>(worker.shared().wrong.load()));
}

/// Goes where process `pid` is: all namespaces are opened before its mounts hide ours.
void enterHost(int pid) {
  std::array<int, 3> spaces{};
  constexpr std::array<const char*, 3> kNames{"net", "uts", "mnt"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/" + kNames[i];
    spaces[i] = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (spaces[i] < 0) bench::die(path.c_str(), std::strerror(errno), __FILE__, __LINE__);
  }
  for (const int space : spaces) {
    if (setns(space, 0) != 0) bench::die("setns", std::strerror(errno), __FILE__, __LINE__);
    close(space);
  }
}

/// How ranks are spread over hosts that are only called so.
struct Pretended {
  int hosts = 0;  ///< 0: one, and one process
  bool threads = false;
};

void pretend(bench::Options& options, const Pretended& pretended, int ranks) {
  options.processes = pretended.threads ? pretended.hosts : ranks;
  options.enter = [hosts = pretended.hosts, processes = options.processes](int process) {
    setenv("NCCL_HOSTID", ("host" + std::to_string(process * hosts / processes)).c_str(), 1);
  };
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options;
  Selection selection;
  std::vector<std::string> names;
  std::vector<std::string> only;
  std::vector<int> hosts;
  for (const Collective* c : kCollectives)
    names.push_back(std::string(c->program, std::strlen(c->program) - std::strlen("_perf")));
  int ranks = 2;
  CLI::App app{"conformance: every collective, type, operation, count and alignment"};
  app.add_option("--ranks", ranks, "ranks, one thread each")->check(CLI::Range(1, 64));
  app.add_flag("--quick", selection.quick, "fewer counts");
  app.add_option("--counts", selection.counts, "these counts alone")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{0}, std::size_t{65537} * 8));
  app.add_option("--only", only, "these collectives alone")->delimiter(',')->check(CLI::IsMember(names));
  app.add_option("--types", selection.types, "these types alone, as the benchmarks call them")->delimiter(',');
  app.add_option("--inside", hosts, "one process for each of these, on its host")->delimiter(',');
  Pretended pretended;
  app.add_option("--hosts", pretended.hosts, "hosts that the ranks take themselves to be on")->check(CLI::Range(1, 64));
  app.add_flag("--threads", pretended.threads, "one process for each of these hosts");
  Run run;
  app.add_option("--registered", run.registered, "register the buffers of all ranks, or of odd ones")
      ->check(CLI::IsMember({"all", "odd"}));
  CLI11_PARSE(app, argc, argv);
  options.processes = hosts.empty() ? 1 : static_cast<int>(hosts.size());
  if (pretended.hosts > 0) pretend(options, pretended, ranks);
  if (ranks % options.processes != 0) return 2;
  options.threads = ranks / options.processes;
  if (!hosts.empty()) options.enter = [&hosts](int process) { enterHost(hosts[static_cast<std::size_t>(process)]); };
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (only.empty() || std::find(only.begin(), only.end(), names[i]) != only.end())
      selection.collectives.push_back(kCollectives[i]);
  }
  options.maxBytes = kLargestBytes + static_cast<std::size_t>(ranks) * 65537 * 8 + 2 * kGuardBytes;
  run.cases = makeCases(selection, ranks);
  return bench::runWorld(options, runRank, &run);
}
