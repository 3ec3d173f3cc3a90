// Hands file descriptors to other processes of this user that present a ticket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/socket/unproven.h"
#include "base/status.h"
#include "base/threads/thread.h"
#include "base/threads/waker.h"
#include "transport/common/fd_wire.h"
#include "transport/common/local_socket.h"

namespace tutti::transport {

/// Whose memory it is that a server hands out. Texts that live as long as the process.
struct FdPurpose {
  const char* transport;  ///< "SHM": what errors begin with
  const char* thread;     ///< name of the server's
  const char* without;    ///< "NCCL_SHM_DISABLE=1 does without shared memory"
};

/// Listens at a local socket, with a thread that sleeps in poll, while something is on offer, and not longer. Who
/// belongs to another user, says nothing, or has no valid ticket gets nothing and holds up nobody. A visitor that has
/// not spoken by the time it is let in stays for kUnprovenTime at most, and only where one of `places` is free; else
/// its line is closed without a word, and who belongs here comes again (fd_fetch.h). Any thread.
class FdServer {
 public:
  explicit FdServer(const FdPurpose& purpose, UnprovenPlaces& places = UnprovenPlaces::ofProcess())
      : purpose_(purpose), places_(places) {}
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
    UnprovenPlaces::Place place;
    Deadline until;
  };
  enum class Visit : std::uint8_t { Silent, Served, Stranger };
  Status open();
  void run();
  /// Whether there is nothing left to do; then nobody listens any more.
  bool leave();
  void acceptAll(std::vector<Visitor>& visitors);
  /// What has become of the visitor: unless Silent, its line is to be closed.
  Visit serve(int line);
  bool grant(int line, const Token& item);

  FdPurpose purpose_;
  UnprovenPlaces& places_;
  mutable std::mutex mutex_;
  std::map<Token, Fd> offers_;
  Token name_{};
  LocalListener listener_;  ///< open()'s while there is no thread, then the thread's
  Waker waker_;             ///< something was withdrawn, or the end has come
  bool running_ = false;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace tutti::transport
