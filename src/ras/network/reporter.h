// Says what happens to processes of the job, for clients that monitor it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "ras/network/members.h"
#include "ras/report/event.h"

namespace tutti::ras {

/// The service's thread only.
class Reporter {
 public:
  /// `members` outlives this. `listen`: is told each event, and must not call back.
  Reporter(const Members& members, std::function<void(const Event&)> listen)
      : members_(members), listen_(std::move(listen)) {}

  void say(EventKind kind, ProcessId who, std::string details = {}) const {
    const Member* const member = members_.find(who);
    if (member != nullptr) listen_({kind, member->facts, std::move(details), std::chrono::system_clock::now()});
  }
  void say(EventKind kind, const Address& who, std::string details = {}) const {
    listen_({kind, who, std::move(details), std::chrono::system_clock::now()});
  }

 private:
  const Members& members_;
  std::function<void(const Event&)> listen_;
};

}  // namespace tutti::ras
