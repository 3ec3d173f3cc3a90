// A local socket at which a process answers questions of its own user and of root, one client at a time.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace tutti {

/// What is asked: counters in the text form of Prometheus.
inline constexpr std::string_view kMetricsTopic = "metrics";
/// What is asked: what operations that do not end wait for, in words.
inline constexpr std::string_view kStallsTopic = "stalls";

struct LocalAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

/// Where process `pid` answers questions about `topic` ("metrics"): a name in the abstract namespace, which belongs to
/// a network namespace and leaves no file.
LocalAddress localAddress(std::string_view topic, pid_t pid);

/// The process's side. Used by one thread; nothing waits.
class LocalService {
 public:
  /// `patience`: how long a client may take to read its answer.
  explicit LocalService(std::chrono::milliseconds patience) : patience_(patience) {}

  /// Listens for questions about `topic`. ncclSystemError, without a log line, where the socket cannot be had.
  Status open(std::string_view topic);
  void close();
  /// Whether there is a client, who waits for give().
  bool asked(SteadyClock::time_point now);
  /// When that client came.
  SteadyClock::time_point since() const { return since_; }
  /// The answer to the client who asked.
  void give(std::string text);
  /// Sends what the client can take; lets go of it when it has all, or its time is up.
  void send(SteadyClock::time_point now);

 private:
  const std::chrono::milliseconds patience_;
  Fd listener_;
  Fd client_;
  SteadyClock::time_point since_{};
  bool answered_ = false;
  std::string text_;  ///< that the client has still to take
};

/// Whether who is at the other end of a connected local socket is this user, or this user is root.
bool isOwnPeer(int socket);

}  // namespace tutti
