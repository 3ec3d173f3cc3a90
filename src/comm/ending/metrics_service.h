// Lets people and monitoring ask a running process what it does: `tutti-info top`, `tutti-info metrics`.
#pragma once

#include <span>

#include "base/clock.h"
#include "base/socket/local_service.h"

struct ncclComm;

namespace tutti::comm {

/// Answers with metricsText() of all communicators, a second later where something is under way. The watch's thread
/// only; nothing waits.
class MetricsService {
 public:
  /// From now on; where the socket cannot be had, nobody is answered.
  void open();
  void close() { service_.close(); }
  /// Four times a second. `comms`: all of the process.
  void serve(std::span<ncclComm* const> comms, SteadyClock::time_point now);

 private:
  /// In which the counters of what is under way are read twice at least.
  static constexpr std::chrono::milliseconds kLook{900};

  LocalService service_{std::chrono::seconds(6)};
};

}  // namespace tutti::comm
