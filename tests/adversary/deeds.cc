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
  if (deed_.delayUs == 0) return commit();
  std::thread([this] {
    std::this_thread::sleep_for(std::chrono::microseconds(deed_.delayUs));
    commit();
  }).detach();
}

void Deeds::commit() const {
  report(rank_, "deed", deed_.how);
  if (deed_.how == "kill") ::kill(::getpid(), SIGKILL);
  if (deed_.how == "stop" || deed_.how == "pause") ::kill(::getpid(), SIGSTOP);
  if (deed_.how == "_exit") ::_exit(kExitCode);
  if (deed_.how == "exit") std::exit(kExitCode);
  if (deed_.how == "abort") std::abort();
  if (deed_.how == "segv") ::raise(SIGSEGV);
  if (deed_.how == "close") closeAll(reportDescriptor());
}

}  // namespace tutti::adversary
