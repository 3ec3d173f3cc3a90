// Lets people ask a running process what its operations wait for: `tutti-info stalls PID`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"

struct ncclComm;

namespace tutti::comm {

/// Listens on a socket of the abstract namespace that is named after the process (base/socket/stall_socket.h). Answers
/// its own user and root, one at a time. The watch's thread only; nothing waits.
class StallService {
 public:
  /// From now on; where the socket cannot be had, nobody is answered.
  void open();
  void close();
  /// Four times a second. `comms`: all of the process. `others`: lines about what belongs to none of them.
  void serve(std::span<ncclComm* const> comms, SteadyClock::time_point now,
             const std::function<std::vector<std::string>()>& others);

 private:
  void welcome(std::span<ncclComm* const> comms, SteadyClock::time_point now);
  void send();

  Fd listener_;
  Fd client_;
  SteadyClock::time_point since_;
  bool composed_ = false;
  std::string text_;  ///< that the client has still to take
};

}  // namespace tutti::comm
