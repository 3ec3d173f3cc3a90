// Operations that do not end, in tests: what is reported of them, and what whoever asks is told.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/socket/local_service.h"
#include "support/log_capture.h"

namespace tutti::test {

/// Waits until the log has `part` so many times; whether it came to that.
inline bool awaitLog(const std::string& part, std::size_t times,
                     std::chrono::seconds limit = std::chrono::seconds(60)) {
  const Deadline deadline = Deadline::in(limit);
  while (countOf(capturedText(), part) < times) {
    if (deadline.expired()) return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

/// Settings are read again at each communicator (NCCL_NO_CACHE=ALL).
inline void stallAfter(const char* seconds) {
  ::setenv("TUTTI_STALL_SEC", seconds, 1);
  allowLog("Stalled init: ");  // on a machine that is busy
}

/// What a person would be told, "" without an answer.
inline std::string askOwnProcess() {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const LocalAddress at = localAddress(kStallsTopic, ::getpid());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0) return "";
  timeval patience{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string text;
  char piece[1024];
  for (ssize_t got = 0; (got = ::recv(socket.get(), piece, sizeof(piece), 0)) > 0;) {
    text.append(piece, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace tutti::test
