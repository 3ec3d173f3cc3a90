// One process of a job that a campaign torments: see run_options.h for its arguments, rank_run.h for what it does, and
// report.h for what it tells. The exit code is that of RankEnd; 50: an operation has hung.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "deeds.h"
#include "members.h"
#include "rank_run.h"
#include "report.h"
#include "run_options.h"

int main(int argc, char** argv) {
  using namespace tutti::adversary;
  RunOptions options;
  if (!readOptions(argc, argv, options)) return 2;
  reportTo(options.report);
  const rlimit noCore{0, 0};
  ::setrlimit(RLIMIT_CORE, &noCore);
  report(-1, "process", std::to_string(::getpid()));

  if (makeIds(options) != ncclSuccess) {
    report(options.ranks.front(), "error", std::string("0 0 ncclGetUniqueId | ") + ncclGetLastError(nullptr));
    return static_cast<int>(RankEnd::CannotBegin);
  }
  Deeds deeds(options.deed, options.ranks.front());
  std::vector<RankEnd> ends(options.ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < options.ranks.size(); ++i)
    threads.emplace_back([&, i] { ends[i] = RankRun(options, options.ranks[i], deeds).run(); });
  for (std::thread& thread : threads) thread.join();

  const int code = static_cast<int>(*std::max_element(ends.begin(), ends.end()));
  report(-1, "exit", std::to_string(code));
  return code;
}
