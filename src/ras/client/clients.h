// All clients of a process, and the door through which they come.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/socket/socket.h"
#include "bootstrap/link/poller.h"
#include "ras/client/session.h"

namespace tutti::ras {

/// One thread, the service's.
class Clients {
 public:
  /// Names under the poller from this on are its own.
  static constexpr std::uint64_t kFirstName = std::uint64_t{1} << 61;

  /// `poller` outlives this. `listener` may be invalid: then nobody comes. `patience`: see Session.
  Clients(bootstrap::Poller& poller, Listener listener, milliseconds patience);

  void onEvent(const bootstrap::Poller::Event& event);
  /// To be called after each wait.
  void tend();
  void happened(const Event& event);

  /// Those who wait for a report, in the order in which they have come. Valid until the next onEvent() or tend().
  std::vector<Session*> waiting();
  /// After something was said to a session.
  void settle();
  /// Closes all, and the door.
  void close();

 private:
  struct Known {
    std::unique_ptr<Session> session;
    bool reads = true;
    bool writes = false;
  };

  void welcome();
  void openDoor(bool open);

  bootstrap::Poller& poller_;
  Listener listener_;
  milliseconds patience_;
  std::size_t most_;
  bool open_ = false;
  Deadline reopen_ = Deadline::never();
  std::uint64_t last_ = kFirstName;
  std::map<std::uint64_t, Known> sessions_;
};

}  // namespace tutti::ras
