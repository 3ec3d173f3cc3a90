#include "deeds.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "report.h"

namespace tutti::adversary {

namespace {

constexpr int kExitCode = 7;

/// All descriptors but the one that tells the campaign.
void closeAll(int spared) {
  ::close_range(0, static_cast<unsigned>(spared) - 1, 0);
  ::close_range(static_cast<unsigned>(spared) + 1, ~0U, 0);
}

void commit(const Deed& deed, int rank) {
  report(rank, "deed", deed.how);
  if (deed.how == "kill") ::kill(::getpid(), SIGKILL);
  if (deed.how == "stop" || deed.how == "pause") ::kill(::getpid(), SIGSTOP);
  if (deed.how == "_exit") ::_exit(kExitCode);
  if (deed.how == "exit") std::exit(kExitCode);
  if (deed.how == "abort") std::abort();
  if (deed.how == "segv") ::raise(SIGSEGV);
  if (deed.how == "close") closeAll(reportDescriptor());
}

}  // namespace

bool Deeds::here(std::string_view stage, int batch) const {
  return stage == deed_.stage && batch == deed_.batch;
}

bool Deeds::wantsTo(std::string_view how, std::string_view stage, int batch) const {
  return deed_.how == how && here(stage, batch);
}

void Deeds::reached(std::string_view stage, int batch) {
  if (deed_.how.empty() || !here(stage, batch) || deed_.how == "leave" || deed_.how == "slow") return;
  if (begun_.exchange(true)) return;
  if (deed_.delayUs == 0) return commit(deed_, rank_);
  // With copies: it may outlive this.
  std::thread([deed = deed_, rank = rank_] {
    std::this_thread::sleep_for(std::chrono::microseconds(deed.delayUs));
    commit(deed, rank);
  }).detach();
}

}  // namespace tutti::adversary
