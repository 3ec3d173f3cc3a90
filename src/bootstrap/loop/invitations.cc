#include "bootstrap/loop/invitations.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tutti::bootstrap {
void Invitations::add(const ncclUniqueId& id) {
  const std::lock_guard lock(mutex_);
  ids_.push_back(id);
  changed_.notify_all();
}

void Invitations::addOurs(const ncclUniqueId& id) {
  const std::lock_guard lock(mutex_);
  ours_.push_back(id);
}

bool Invitations::isOurs(const ncclUniqueId& id) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(ours_.begin(), ours_.end(), [&](const auto& one) { return bytesOf(one) == bytesOf(id); });
}

std::optional<ncclUniqueId> Invitations::unusedOfOurs() const {
  const std::lock_guard lock(mutex_);
  if (ours_.empty() || used_.contains(bytesOf(ours_.back()))) return std::nullopt;
  return ours_.back();
}

Status Invitations::use(const ncclUniqueId& id) {
  const std::lock_guard lock(mutex_);
  if (used_.insert(bytesOf(id)).second) return Status();
  return fail(ncclInvalidArgument,
              "Bootstrap: the id was used before to grow this communicator: ncclCommGetUniqueId makes another one");
}

Result<ncclUniqueId> Invitations::take(Deadline deadline, const Abort& abort, Deadline reportAt) {
  std::unique_lock lock(mutex_);
  while (true) {
    while (!ids_.empty()) {
      const ncclUniqueId id = ids_.front();
      ids_.pop_front();
      if (used_.insert(bytesOf(id)).second) return id;
    }
    if (abort.raised()) return abort.status();
    if (!closed_.ok()) return fail(closed_.code(), "Bootstrap: no unique id has come by which to grow: {}", why_);
    if (deadline.expired()) {
      return fail(ncclRemoteError,
                  "Bootstrap: no rank has told the unique id by which to grow: the rank that called "
                  "ncclCommGetUniqueId has to pass it to ncclCommGrow; TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time "
                  "allowed");
    }
    if (reportAt.expired()) {
      reportAt = Deadline::never();
      warn(
          "Bootstrap: ncclCommGrow waits for the unique id by which to grow: the rank that called ncclCommGetUniqueId "
          "has to pass it to ncclCommGrow. Waiting goes on; TUTTI_SPLIT_REPORT_SEC sets when this is said");
    }
    changed_.wait_until(lock, deadline.earlierOf(Deadline::in(kLookAtAbort)).when());
  }
}

void Invitations::close(Status why, const char* text) {
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return;
  closed_ = why;
  why_ = text;
  changed_.notify_all();
}

}  // namespace tutti::bootstrap
