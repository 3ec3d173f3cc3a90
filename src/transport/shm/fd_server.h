// Hands file descriptors to other processes of this user that present a ticket.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/threads/thread.h"
#include "base/threads/waker.h"
#include "transport/common/local_socket.h"
#include "transport/shm/fd_wire.h"

namespace tutti::shm {

/// Listens at a local socket, with a thread that sleeps in poll, while something is on offer, and not longer. Who
/// belongs to another user, says nothing, or has no valid ticket gets nothing and holds up nobody. Any thread.
class FdServer {
 public:
  /// Strangers that may be connected without having said anything; the next one drives the oldest out.
  static constexpr std::size_t kMostSilent = 32;

  FdServer() = default;
  FdServer(const FdServer&) = delete;
  ~FdServer();

  /// Keeps `fd` until it has been handed out, once, or is withdrawn. Errors: ncclSystemError with the system's words.
  Result<Ticket> offer(Fd fd);
  /// Nothing happens where it has been handed out.
  void withdraw(const Ticket& ticket);
  /// On offer now.
  std::size_t pending() const;
  bool listening() const;

 private:
  struct Visitor {
    Fd line;
    Deadline until;
  };
  Status open();
  void run();
  /// Whether there is nothing left to do; then nobody listens any more.
  bool leave();
  void acceptAll(std::vector<Visitor>& visitors);
  /// Whether the visitor has been dealt with.
  bool serve(int line);
  bool grant(int line, const Token& item);

  mutable std::mutex mutex_;
  std::map<Token, Fd> offers_;
  Token name_{};
  transport::LocalListener listener_;  ///< open()'s while there is no thread, then the thread's
  Waker waker_;                        ///< something was withdrawn, or the end has come
  bool running_ = false;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace tutti::shm
