// Every function of a communicator's life in every situation: blocking and not, by threads and by processes, over every
// transport. Compares with the table in table.cc.
//
//   lifecycle_table [--threads] [--processes] [--transport P2P|SHM|TCP] [--function NAME] [--situation NAME]
//                   [--hosts] [--verbose] [--seen FILE]
//   lifecycle_table --list
//
// --hosts: each process takes itself for a host of its own (NCCL_HOSTID), so that ranks are joined by a network.
// --seen: writes a line for each cell: function, situation, blocking or not, threads or processes, transport, and what
// was answered, between tabs. --list: prints the entries of the table (table.h). table_document.py makes documents of
// both.
// Without options all of it. Needs four devices (softgpu-run -n 4). A cell that hangs or crashes costs its processes;
// the next cell gets new ones. A function that the library does not have is an error.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "lifecycle/cell_run.h"
#include "lifecycle/library_features.h"

namespace {

using namespace lifecycle;

struct Options {
  bool threads = true;
  bool processes = true;
  bool hosts = false;
  bool verbose = false;
  std::string transport;
  std::string function;
  std::string situation;
  std::string seen;
};

constexpr int kNone = -1;

/// In shared memory: what each rank found in a cell.
struct Found {
  std::atomic<bool> done{false};
  std::atomic<int> answer{kNone};  ///< of its call
  Notice what;
};
constexpr std::size_t kMostCells = 600;
using Findings = std::array<std::array<Found, kTableRanks>, kMostCells>;

struct Job {
  Shared& shared;
  std::vector<Cell> cells;
  bool hosts = false;
};

Findings* findings = nullptr;  // of the cells of the group that is carried out

bool wanted(const Options& options, const Cell& cell) {
  const auto fits = [](const std::string& asked, const char* name) { return asked.empty() || asked == name; };
  return (cell.processes ? options.processes : options.threads) && fits(options.transport, nameOf(cell.transport)) &&
         fits(options.function, nameOf(cell.function)) && fits(options.situation, nameOf(cell.situation)) &&
         !expected(cell.function, cell.situation).answers.empty();
}

bool isThere(std::uint32_t features, Function function) {
  switch (function) {
    case Function::Split:
      return (features & kSplit) != 0;
    case Function::Shrink:
    case Function::ShrinkAbort:
      return (features & kShrink) != 0;
    case Function::GetUniqueId:
    case Function::Grow:
      return (features & kGrow) != 0;
    case Function::Revoke:
      return (features & kRevoke) != 0;
    case Function::Suspend:
    case Function::Resume:
      return (features & kSuspend) != 0;
    case Function::MemStats:
      return (features & kMemStats) != 0;
    default:
      return true;
  }
}

void useTransport(Transport transport) {
  if (transport != Transport::P2p) ::setenv("NCCL_P2P_DISABLE", "1", 1);
  if (transport == Transport::Tcp) ::setenv("NCCL_SHM_DISABLE", "1", 1);
}

void runRank(Job& job, int rank, std::size_t first) {
  for (std::size_t i = first; i < job.cells.size(); ++i) {
    CellRun run(job.shared, job.cells[i], rank, static_cast<long>(i));
    const std::string wrong = run.run();
    Found& found = (*findings)[i][static_cast<std::size_t>(rank)];
    found.what.write(wrong);
    found.answer = run.answer() ? static_cast<int>(*run.answer()) : kNone;
    found.done = true;
  }
}

/// One process with all ranks, or one of several.
[[noreturn]] void runProcess(Job& job, int firstRank, int lastRank, std::size_t first) {
  useTransport(job.cells.front().transport);
  if (job.hosts) ::setenv("NCCL_HOSTID", ("host" + std::to_string(firstRank)).c_str(), 1);
  watch(job.shared, firstRank, lastRank);
  std::vector<std::thread> threads;
  for (int rank = firstRank; rank <= lastRank; ++rank) threads.emplace_back([&, rank] { runRank(job, rank, first); });
  for (std::thread& thread : threads) thread.join();
  std::fflush(stdout);
  ::_exit(0);
}

/// Runs the cells from `first` on in new processes, as far as they come.
void startAndWait(Job& job, std::size_t first) {
  const int processes = job.cells.front().processes ? kTableRanks : 1;
  for (int p = 0; p < processes; ++p) {
    if (::fork() == 0) runProcess(job, processes == 1 ? 0 : p, processes == 1 ? kTableRanks - 1 : p, first);
  }
  int status = 0;
  while (::wait(&status) > 0) {
    if (status != 0) job.shared.patienceMs = 2000;  // the others wait in vain
  }
}

bool isDone(const Cell& cell, std::size_t i) {
  for (int rank = 0; rank < kTableRanks; ++rank) {
    const bool died = cell.processes && someoneDies(cell.situation) && rank == kMembers - 1;
    if (!died && !(*findings)[i][static_cast<std::size_t>(rank)].done) return false;
  }
  return true;
}

/// What has come out, and where it is told.
struct Report {
  bool verbose = false;
  std::FILE* seen = nullptr;
  int right = 0;
  int wrong = 0;
};

/// The codes that the ranks of a cell were answered, each once.
std::string answersOf(std::size_t cell) {
  std::set<int> codes;
  for (const Found& found : (*findings)[cell])
    if (found.done && found.answer != kNone) codes.insert(found.answer);
  std::string text;
  for (const int code : codes) text += (text.empty() ? "" : " and ") + std::to_string(code);
  return text;
}

void judge(const Cell& cell, const std::string& wrong, const std::string& answers, Report& report) {
  ++(wrong.empty() ? report.right : report.wrong);
  if (!wrong.empty())
    std::printf("WRONG: %s: %s\n", describe(cell).c_str(), wrong.c_str());
  else if (report.verbose)
    std::printf("right: %s: %s\n", describe(cell).c_str(), answers.c_str());
  std::fflush(stdout);
  if (report.seen == nullptr) return;
  std::fprintf(report.seen, "%s\t%s\t%s\t%s\t%s\t%s\n", nameOf(cell.function), nameOf(cell.situation),
               cell.blocking ? "blocking" : "non-blocking", cell.processes ? "processes" : "threads",
               nameOf(cell.transport), wrong.empty() ? answers.c_str() : "wrong");
  std::fflush(report.seen);
}

/// Cells that share their processes.
void runGroup(const std::vector<Cell>& cells, std::uint32_t features, bool hosts, Report& report) {
  for (std::size_t first = 0; first < cells.size();) {
    Job job{makeShared(), cells, hosts};
    job.shared.ranks = kTableRanks;
    job.shared.features = features;
    job.shared.patienceMs = 20'000;
    for (std::size_t i = first; i < cells.size(); ++i)
      for (Found& found : (*findings)[i]) found.answer = kNone, found.done = false;
    startAndWait(job, first);
    std::size_t i = first;
    for (; i < cells.size() && isDone(cells[i], i); ++i) {
      std::string wrong;
      for (int rank = 0; rank < kTableRanks; ++rank) {
        const Found& found = (*findings)[i][static_cast<std::size_t>(rank)];
        const std::string what = found.done ? found.what.read() : "";
        if (!what.empty()) wrong += (wrong.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + what;
      }
      judge(cells[i], wrong, answersOf(i), report);
    }
    if (i < cells.size()) judge(cells[i], "hangs or crashes", "", report);
    first = i + 1;
  }
}

std::uint32_t askFeatures() {
  Shared& shared = makeShared();
  if (::fork() == 0) {
    if (cudaSetDevice(0) == cudaSuccess) shared.features = probeFeatures();
    ::_exit(0);
  }
  int status = 0;
  ::wait(&status);
  return shared.features;
}

/// Those whose last rank dies need processes of their own; all others of a kind share them.
std::vector<std::vector<Cell>> allGroups(const Options& options, std::uint32_t features) {
  std::vector<std::vector<Cell>> groups;
  for (const bool processes : {false, true}) {
    for (int t = 0; t < kTransports; ++t) {
      std::vector<Cell> together;
      for (int f = 0; f < kFunctions; ++f) {
        for (int s = 0; s < kSituations; ++s) {
          for (const bool blocking : {true, false}) {
            const Cell cell{static_cast<Function>(f), static_cast<Situation>(s), blocking, processes,
                            static_cast<Transport>(t)};
            if (!wanted(options, cell) || !isThere(features, cell.function)) continue;
            if (processes && someoneDies(cell.situation))
              groups.push_back({cell});
            else
              together.push_back(cell);
          }
        }
      }
      if (!together.empty()) groups.push_back(together);
    }
  }
  return groups;
}

bool read(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--threads")
      options.processes = false;
    else if (name == "--processes")
      options.threads = false;
    else if (name == "--hosts")
      options.hosts = true;
    else if (name == "--verbose")
      options.verbose = true;
    else if (name == "--transport" && i + 1 < argc)
      options.transport = argv[++i];
    else if (name == "--function" && i + 1 < argc)
      options.function = argv[++i];
    else if (name == "--situation" && i + 1 < argc)
      options.situation = argv[++i];
    else if (name == "--seen" && i + 1 < argc)
      options.seen = argv[++i];
    else
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    std::fputs(listing().c_str(), stdout);
    return 0;
  }
  Options options;
  if (!read(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: lifecycle_table [--threads] [--processes] [--transport NAME] [--function NAME] "
                 "[--situation NAME] [--hosts] [--verbose] [--seen FILE] | --list\n");
    return 2;
  }
  void* const memory = &makeShared();  // large enough, and shared
  static_assert(sizeof(Findings) <= sizeof(Shared));
  findings = new (memory) Findings;
  const std::uint32_t features = askFeatures();
  if ((features & kProbed) == 0) {
    std::printf("the library cannot be asked which functions it has\n");
    return 1;
  }
  Report report;
  report.verbose = options.verbose;
  if (!options.seen.empty() && (report.seen = std::fopen(options.seen.c_str(), "w")) == nullptr) {
    std::perror(options.seen.c_str());
    return 2;
  }
  for (const auto& group : allGroups(options, features)) runGroup(group, features, options.hosts, report);
  if (report.seen != nullptr) std::fclose(report.seen);
  const std::string missing = missingFeatures(features);
  std::printf("%d cells are as the table says, %d are not\n", report.right, report.wrong);
  if (!missing.empty()) std::printf("left out, because the library does not have it: %s\n", missing.c_str());
  return report.wrong == 0 && report.right > 0 && missing.empty() ? 0 : 1;
}
