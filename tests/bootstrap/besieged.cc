// Joins again and again while another process floods the root's port with strangers, and says what they cost:
// bootstrap_besieged [inits] [strangers per second] [held connections].
//
// The inits use NCCL_COMM_ID, for then the port is known. Rank 0, and the root with it, waits for the others for a
// while in which strangers can gather; the time counts from when the others begin. First it is measured without
// strangers.
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/socket/socket.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "bootstrap/settings.h"

namespace {

using namespace tutti;

constexpr int kRanks = 4;
constexpr milliseconds kGathering{150};

double cpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int descriptors() {
  int count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

int connecting(const Address& at) {
  const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
  (void)::connect(fd, at.raw(), at.length());
  return fd;
}

/// Holds `held` connections open, makes lost ones again, and opens and closes `perSecond` others. System calls only.
[[noreturn]] void besiege(const Address& at, int perSecond, int held) {
  std::vector<int> kept(static_cast<std::size_t>(held), -1);
  std::vector<int> passing(64, -1);
  const auto start = SteadyClock::now();
  std::size_t at64 = 0;
  for (long made = 0;; ++made) {
    if (held > 0 && made % 4 == 0) {
      int& one = kept[static_cast<std::size_t>(made / 4) % kept.size()];
      char byte = 0;
      const bool lost = one < 0 || ::recv(one, &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
      if (lost) {
        if (one >= 0) ::close(one);
        one = connecting(at);
      }
    }
    int& next = passing[at64++ % passing.size()];
    if (next >= 0) ::close(next);
    next = connecting(at);
    const auto due = start + std::chrono::nanoseconds(made * 1'000'000'000L / std::max(perSecond, 1));
    if (made % 32 == 0) std::this_thread::sleep_until(due);
  }
}

/// A port that nobody else gets while `socket` is open: roots listen there one after another, and in between it would
/// be anybody's.
struct Reserved {
  Fd socket;
  Address at;
};

/// Not one of those that the system gives to clients, of which there will be many.
Reserved reservePort() {
  for (int port = 20'000; port < 30'000; ++port) {
    const Address at = Address::loopback(AF_INET, static_cast<std::uint16_t>(port));
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(socket.get(), at.raw(), at.length()) != 0) continue;
    // Roots may share it from now on, and another process of strangers has found it taken.
    const int on = 1;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    return {std::move(socket), at};
  }
  return {};
}

struct Outcome {
  std::vector<double> milliseconds;
  int failed = 0;
  double cpu = 0;
  double seconds = 0;
};

Outcome joinAgainAndAgain(int inits, const bootstrap::BootstrapSettings& settings) {
  Outcome outcome;
  const double cpu = cpuSeconds();
  const auto start = SteadyClock::now();
  for (int i = 0; i < inits; ++i) {
    auto begin = SteadyClock::now();
    std::atomic<int> failed{0};
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const std::vector<ncclUniqueId> ids{bootstrap::createUniqueId(settings).value()};
        bootstrap::JoinOptions options;
        options.ids = ids;
        options.rank = rank;
        options.nRanks = kRanks;
        options.settings = settings;
        auto joined = bootstrap::Bootstrap::join(options);
        if (joined.ok() && joined.value()->barrier().ok()) return;
        std::printf("rank %d: %s\n", rank, lastErrorText());
        ++failed;
      });
      if (rank > 0) continue;
      std::this_thread::sleep_for(kGathering);
      begin = SteadyClock::now();
    }
    for (std::thread& rank : ranks) rank.join();
    outcome.failed += failed > 0 ? 1 : 0;
    outcome.milliseconds.push_back(secondsSince(begin) * 1e3);
  }
  outcome.cpu = cpuSeconds() - cpu;
  outcome.seconds = secondsSince(start);
  std::sort(outcome.milliseconds.begin(), outcome.milliseconds.end());
  return outcome;
}

void print(const char* what, const Outcome& outcome) {
  std::printf("%-18s %d of %zu inits failed; median %.1f ms, longest %.1f ms; %.1f %% of a CPU\n", what, outcome.failed,
              outcome.milliseconds.size(), outcome.milliseconds[outcome.milliseconds.size() / 2],
              outcome.milliseconds.back(), 100.0 * outcome.cpu / outcome.seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const int inits = argc > 1 ? std::atoi(argv[1]) : 100;
  const int perSecond = argc > 2 ? std::atoi(argv[2]) : 10'000;
  const int held = argc > 3 ? std::atoi(argv[3]) : 1'000;
  const Reserved reserved = reservePort();
  if (!reserved.socket.valid()) {
    std::printf("no port is free: %s\n", lastErrorText());
    return 1;
  }
  const Address at = reserved.at;
  bootstrap::BootstrapSettings settings;
  settings.commId = "127.0.0.1:" + std::to_string(at.port());
  settings.commKey = "words that are shared";
  settings.timeout = milliseconds(60'000);
  const Outcome quiet = joinAgainAndAgain(inits, settings);
  print("without strangers:", quiet);
  const int before = descriptors();
  const pid_t strangers = ::fork();
  if (strangers == 0) besiege(at, perSecond, held);
  std::atomic<bool> done = false;
  std::atomic<int> most{0};
  std::thread counter([&] {
    while (!done) {
      most = std::max(most.load(), descriptors() - before);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  const Outcome besieged = joinAgainAndAgain(inits, settings);
  done = true;
  counter.join();
  ::kill(strangers, SIGKILL);
  ::waitpid(strangers, nullptr, 0);
  print("besieged:", besieged);
  std::printf("descriptors at most, those of %d ranks included: %d\n", kRanks, most.load());
  return quiet.failed + besieged.failed == 0 ? 0 : 1;
}
