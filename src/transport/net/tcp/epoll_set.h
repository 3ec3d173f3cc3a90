// On which of many sockets something has come, for one call of the system instead of one for each.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/fd.h"

namespace tutti::net::tcp {

/// The receiving sockets of a communicator. Any thread.
class EpollSet {
 public:
  /// Null where the system gives no descriptor: then each socket has to be asked itself.
  static std::shared_ptr<EpollSet> create();

  /// From now on ask() sets `came` when something has come on the socket since it was last found empty, and once for
  /// what is there already; also when the peer closes it, and when it fails. `came` must stay until remove(). Whether
  /// the system takes it.
  bool add(int socket, std::atomic<bool>& came);
  void remove(int socket);

  /// Asks the system, but for turns that come within a few microseconds of the last.
  void ask(SteadyClock::time_point now);

 private:
  explicit EpollSet(Fd set) : set_(std::move(set)) {}

  Fd set_;
  std::mutex mutex_;  ///< nothing that was removed is set any more, nor anything before add()
  SteadyClock::time_point askedAt_{};
};

}  // namespace tutti::net::tcp
