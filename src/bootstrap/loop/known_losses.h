// What this process has heard of failures, in all its communicators: why an application that aborts one of them may do
// so.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bootstrap/link/wire.h"

namespace tutti::bootstrap {

/// A process of which some communicator has heard that it is lost or that it failed.
struct KnownLoss {
  std::string host;  ///< as tables of ranks name it; empty where not known
  int pid = 0;       ///< 0 where not known
  Cause cause = Cause::Observed;
  std::string text;  ///< with the rank's number in that communicator
  SteadyClock::time_point when = SteadyClock::now();
};

/// A failure of another communicator may be why an application gives one up within that time.
inline constexpr auto kNotLongBefore = std::chrono::seconds(60);

/// Who has heard of a failure may not come to what another process begins that hears of it so much earlier or later.
inline constexpr auto kNewsSpread = std::chrono::seconds(5);

/// Ranks have other numbers in other communicators, so processes are known by host and pid. Any thread.
class KnownLosses {
 public:
  static KnownLosses& instance();

  /// Of one process only what is known best is kept; of all of them the last 64. What a text quotes is not kept with
  /// it: texts would grow with each failure of a process.
  void add(KnownLoss loss);
  /// A process has aborted a communicator, as its notice says. If that quotes why, the reason is kept and not the
  /// abort: of a chain of aborts, each the reason of the next, every one quotes what the first one did.
  void addAbort(KnownLoss loss);
  /// That process's own failure or death, heard of since `since`: an earlier one may be of a process that had its
  /// number before.
  std::optional<KnownLoss> of(std::string_view host, int pid, SteadyClock::time_point since) const;
  /// The last one of all since then, whoever it was; an abort for which no reason is known only if there is nothing
  /// else.
  std::optional<KnownLoss> latest(SteadyClock::time_point since) const;
  /// ", perhaps because another one of its process had failed: …", for what a process gives up that was begun then;
  /// "" where nothing was heard of since, or not lately.
  std::string perhapsBecause(SteadyClock::time_point begun) const;

 private:
  mutable std::mutex mutex_;
  std::vector<KnownLoss> losses_;  ///< the oldest first
};

}  // namespace tutti::bootstrap
