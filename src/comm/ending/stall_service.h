// Lets people ask a running process what its operations wait for: `tutti-info stalls PID`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/socket/local_service.h"

struct ncclComm;

namespace tutti::comm {

/// Answers one client at a time, when its communicators have heard of their peers. The watch's thread only; nothing
/// waits.
class StallService {
 public:
  /// From now on; where the socket cannot be had, nobody is answered.
  void open();
  void close();
  /// Four times a second. `comms`: all of the process. `others`: lines about what belongs to none of them.
  void serve(std::span<ncclComm* const> comms, SteadyClock::time_point now,
             const std::function<std::vector<std::string>()>& others);

 private:
  /// How long communicators may take to answer.
  static constexpr std::chrono::seconds kPatience{6};

  LocalService service_{2 * kPatience};
  bool inquired_ = false;            ///< the communicators were asked for who asks now …
  SteadyClock::time_point since_{};  ///< … at this moment
};

}  // namespace tutti::comm
