// How far a listening socket is open to clients that do not knock.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/socket/knock.h"

namespace tutti::bootstrap {

/// How narrow the last narrow gate was, and when: who has besieged one listener is likely to besiege the next. Any
/// thread.
class Sieges {
 public:
  /// Of all gates of this process.
  static Sieges& ofProcess();
  void remember(std::uint32_t oneIn);
  /// 1 where there was none in the last seconds.
  std::uint32_t last() const;

 private:
  std::atomic<std::uint32_t> oneIn_{1};
  std::atomic<SteadyClock::time_point> when_{SteadyClock::time_point()};
};

/// Has the kernel leave most of them unanswered (knock.h) as long as many prove to be strangers, and opens again when
/// they have become few: what strangers cost does not grow with their number. While nobody bothers it, the socket is
/// like any other. Not thread-safe.
class Gate {
 public:
  /// `listener` stays its owner's, who calls nothing here once it is closed.
  explicit Gate(int listener, Sieges& sieges = Sieges::ofProcess()) : listener_(listener), sieges_(sieges) {}

  /// So many more clients were strangers; those that belong here knock with `knock`, the same each time.
  void sawStrangers(std::uint64_t count, std::span<const KnockWord> knock);
  /// Opens again, step by step; to be called after each wait.
  void tend();
  /// When tend() has something to do.
  Deadline next() const { return window_; }
  /// Of clients that do not knock one in so many is answered.
  std::uint32_t oneIn() const { return oneIn_; }
  /// A connection that was accepted may have inherited a filter.
  bool everNarrow() const { return everNarrow_; }

 private:
  void set(std::uint32_t oneIn);
  void startCounting();

  int listener_;
  Sieges& sieges_;
  std::uint32_t oneIn_ = 1;
  bool everNarrow_ = false;
  bool refused_ = false;  ///< the system cannot do it
  std::uint64_t seen_ = 0;
  SteadyClock::time_point since_{};      ///< when counting them began
  Deadline window_ = Deadline::never();  ///< until when they are counted
  std::vector<KnockWord> knock_;
};

}  // namespace tutti::bootstrap
