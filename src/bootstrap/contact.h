// A rank's calls to roots and other ranks, and what is said when they fail.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "bootstrap/link/dial.h"

namespace tutti::bootstrap {

class ConnectionLoop;

/// Whom a rank calls, and how long it may take.
struct Contact {
  DialTarget target;
  Address own;                             ///< where this rank listens, for messages; unset: not known
  std::string whom;                        ///< in messages
  Deadline listening = Deadline::never();  ///< as DialLimits
  Deadline deadline = Deadline::never();
  milliseconds answer{10'000};
  int peer = -1;                ///< the rank whose leaving ends it; -1: nobody's
  bool whateverFailed = false;  ///< a failure of the communicator does not end it
};

/// An open connection. A failure of the communicator, `abort` (may be null) and the peer's leaving end the wait within
/// a second or two. Errors: ncclRemoteError, ncclSystemError (this process's own trouble), ncclInvalidUsage (another
/// key, version or program), the Abort's status; each with what is known and what it may be.
Result<std::unique_ptr<Link>> makeContact(const Contact& contact, ConnectionLoop& loop, const Abort* abort);

}  // namespace tutti::bootstrap
