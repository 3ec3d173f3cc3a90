#include "support/thread_ranks.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/log_capture.h"
#include "support/thread_stacks.h"

namespace tutti::test {

namespace {

struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> finished;
  std::size_t count = 0;
};

void runOne(int rank, const std::function<void(int)>& body, Progress& progress) {
  try {
    body(rank);
  } catch (const std::exception& e) {
    ADD_FAILURE() << "rank " << rank << " threw: " << e.what();
  }
  const std::lock_guard lock(progress.mutex);
  progress.finished[static_cast<std::size_t>(rank)] = true;
  ++progress.count;
  progress.changed.notify_all();
}

std::string unfinished(const Progress& progress) {
  std::string names;
  for (std::size_t rank = 0; rank < progress.finished.size(); ++rank) {
    if (!progress.finished[rank]) names += fmt::format(" {}", rank);
  }
  return names;
}

}  // namespace

void runRanks(int ranks, const std::function<void(int)>& body, std::chrono::seconds limit) {
  Progress progress;
  progress.finished.resize(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([rank, &body, &progress] { runOne(rank, body, progress); });
  }
  {
    std::unique_lock lock(progress.mutex);
    const bool all = progress.changed.wait_for(lock, limit, [&] { return progress.count == threads.size(); });
    if (!all) {
      std::fprintf(stderr, "runRanks: after %lld s these ranks have not returned:%s\n",
                   static_cast<long long>(limit.count()), unfinished(progress).c_str());
      std::fprintf(stderr, "Logged so far:\n%s\n", capturedText().c_str());
      writeThreadStacks();
      std::fflush(nullptr);
      ::_exit(1);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::test
