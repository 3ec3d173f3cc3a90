// What the engine does with its processor while there is nothing to do, and for how long.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tutti::proxy {

/// The ladder of waiting: look again at once, then give the processor to whoever wants it, then pause. A pause is a
/// quarter of the time already waited, so a step that comes meanwhile is at most that much late, whatever the network's
/// latency is, and a thread that has waited long costs next to nothing. The software GPU's threads wait by the same
/// rule.
struct BackoffPolicy {
  enum class Step : std::uint8_t { Spin, Yield, Pause };
  struct Next {
    Step step;
    std::chrono::nanoseconds pause{0};  ///< for Step::Pause
  };

  /// A step over a fast network, or between two kernels, takes 5 to 20 us: worth a processor.
  std::chrono::nanoseconds spin = std::chrono::microseconds(20);
  /// Over TCP 20 to 100 us: worth one that nobody else wants.
  std::chrono::nanoseconds yield = std::chrono::microseconds(80);
  /// Less is not worth the two switches of a sleep, about 5 us.
  std::chrono::nanoseconds shortestPause = std::chrono::microseconds(5);
  /// The most that a step may be late. A pause costs 5 to 20 us of a processor by the machine: 2 to 10 % of one while
  /// kernels run that need nothing.
  std::chrono::nanoseconds longestPause = std::chrono::microseconds(200);
  /// Asking the driver for kernels takes about 1 us: 2 % of the time between two questions, or less.
  std::chrono::nanoseconds askEvery = std::chrono::microseconds(50);
  /// The answer only ends the polling: with many groups a late one costs less than many questions.
  std::chrono::nanoseconds askAtLeastEvery = std::chrono::milliseconds(10);

  /// For a thread that may run on so many processors. With few of them, what is waited for is likely to need this one:
  /// it yields at once, and for longer than a step of a large operation takes, for a pause in the middle of a pipeline
  /// stops the peer's as well (1 MB over TCP between two processes on two processors: 270 us, and 980 us with pauses
  /// after 20 us). Longer pauses are for many ranks on a small machine, where a step takes milliseconds and the engines
  /// together must leave the processors to the others.
  static BackoffPolicy forProcessors(int count) {
    constexpr int kPlenty = 8;
    BackoffPolicy backoff;
    if (count >= kPlenty) return backoff;
    backoff.spin = std::chrono::nanoseconds(0);
    backoff.yield = std::chrono::microseconds(count > 1 ? 400 : 0);
    backoff.longestPause = std::chrono::milliseconds(1);
    return backoff;
  }

  /// After this long without progress it is worth asking whether there is anything to wait for.
  std::chrono::nanoseconds beforePauses() const { return spin + yield; }

  Next next(std::chrono::nanoseconds idle) const {
    if (idle < spin) return {.step = Step::Spin};
    if (idle < spin + yield) return {.step = Step::Yield};
    return {.step = Step::Pause, .pause = std::clamp(idle / 4, shortestPause, longestPause)};
  }
  /// From one question whether kernels run to the next.
  std::chrono::nanoseconds untilNextQuestion(std::chrono::nanoseconds idle) const {
    return std::clamp(idle / 4, askEvery, askAtLeastEvery);
  }
};

}  // namespace tutti::proxy
