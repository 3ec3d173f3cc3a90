// The connections that a relay has, for reports of stalls.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/net/pxn/send_task.h"

namespace tutti::net::pxn {

/// Any thread; nothing waits.
class PxnConnections {
 public:
  /// `sender`: the rank that it is for, for people.
  void enter(const PxnSendTask& work, std::string sender) {
    const std::lock_guard lock(mutex_);
    entries_.push_back({&work, std::move(sender)});
  }
  /// Before it goes; nothing if it was not entered.
  void leave(const PxnSendTask& work) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) { return entry.work == &work; });
  }
  bool any() const {
    const std::lock_guard lock(mutex_);
    return !entries_.empty();
  }
  /// A line for each connection that has something which has not come through: "in the stead of rank 0 (host a, device
  /// 0): send to rank 3 (host b, device 0) by …".
  std::vector<std::string> underWay() const {
    std::vector<std::string> lines;
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (!entry.work->atRest()) lines.push_back("in the stead of " + entry.sender + ": " + entry.work->describe());
    }
    return lines;
  }

 private:
  struct Entry {
    const PxnSendTask* work;
    std::string sender;
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tutti::net::pxn
