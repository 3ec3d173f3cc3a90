// One process of a job that a campaign torments: see run_options.h for its arguments, rank_run.h for what it does, and
// report.h for what it tells. The exit code is that of RankEnd; 50: an operation has hung.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "deeds.h"
#include "members.h"
#include "rank_run.h"
#include "report.h"
#include "run_options.h"
#include "starvation.h"

namespace {

using namespace tutti::adversary;

/// A process without memory or threads is one that cannot begin, not one that crashes.
RankEnd runGuarded(const RunOptions& options, int jobRank, Deeds& deeds) {
  try {
    return RankRun(options, jobRank, deeds).run();
  } catch (const std::exception& e) {
    report(jobRank, "cannot", e.what());
    return RankEnd::CannotBegin;
  }
}

int runAll(const RunOptions& options) {
  // Where threads are few, the ranks need them.
  std::optional<StarvationWatch> watch;
  if (options.threads == 0) watch.emplace();
  if (makeIds(options) != ncclSuccess) {
    report(options.ranks.front(), "error", std::string("0 0 ncclGetUniqueId | ") + ncclGetLastError(nullptr));
    return static_cast<int>(RankEnd::CannotBegin);
  }
  Deeds deeds(options.deed, options.ranks.front());
  // A single rank needs no thread of its own.
  if (options.ranks.size() == 1) return static_cast<int>(runGuarded(options, options.ranks.front(), deeds));
  std::vector<RankEnd> ends(options.ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < options.ranks.size(); ++i)
    threads.emplace_back([&, i] { ends[i] = runGuarded(options, options.ranks[i], deeds); });
  threads.clear();
  return static_cast<int>(*std::max_element(ends.begin(), ends.end()));
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  if (!readOptions(argc, argv, options)) return 2;
  reportTo(options.report);
  const rlimit noCore{0, 0};
  ::setrlimit(RLIMIT_CORE, &noCore);
  report(-1, "process", std::to_string(::getpid()));
  // Not before the program is started: the system refuses to start one whose user has too many already.
  const rlimit threads{static_cast<rlim_t>(options.threads), static_cast<rlim_t>(options.threads)};
  if (options.threads > 0) ::setrlimit(RLIMIT_NPROC, &threads);
  int code = static_cast<int>(RankEnd::CannotBegin);
  try {
    code = runAll(options);
  } catch (const std::exception& e) {
    report(-1, "cannot", e.what());
  }
  report(-1, "exit", std::to_string(code));
  return code;
}
