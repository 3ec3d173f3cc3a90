#include "bootstrap/contact.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/host.h"
#include "base/log.h"
#include "base/socket/errors.h"
#include "bootstrap/loop/connection_loop.h"

namespace tutti::bootstrap {
namespace {

/// A rank listens as long as it is a member; word that it has left may be under way for so long.
constexpr milliseconds kGone{1000};

/// The root may live in this very process, where it cannot say so. A connection takes one at each of its ends, and that
/// of this one is free again.
const char* ownShortage() {
  const Fd end(::eventfd(0, EFD_CLOEXEC));
  const Fd otherEnd(::eventfd(0, EFD_CLOEXEC));
  const bool none = !otherEnd.valid() && (errno == EMFILE || errno == ENFILE);
  return none ? ". This process has no file descriptors left: raise ulimit -n" : "";
}

std::string otherSide(const Dialed& dialed) {
  switch (dialed.verdict) {
    case Verdict::WrongKey:
      return "does not share this communicator's key: has that process ended and another job taken its port, or does "
             "TUTTI_COMM_KEY differ?";
    case Verdict::OtherVersion:
      return fmt::format(
          "speaks version {} of the bootstrap's protocol, this library version {}: load the same library "
          "everywhere",
          dialed.version, kProtocolVersion);
    default:
      return "is no rank or root of this library: is NCCL_COMM_ID's port taken by another program?";
  }
}

/// Of ranks on different hosts, where one announces an address that the other's host takes for its own.
std::string wrongInterface(const Contact& contact) {
  if (!contact.own.set() || contact.own.isLoopback() || !contact.target.at.isLoopback()) return {};
  return fmt::format(
      " It listens on the loopback interface, where no other host reaches it; rank {} (host {}) listens at {}. Had it "
      "no "
      "other interface that was up and had a carrier when it began, or does NCCL_SOCKET_IFNAME say so there?",
      contact.target.clientRank, hostName(), contact.own.text());
}

Status failure(const Contact& contact, const Dialed& dialed) {
  const std::string lost = wrongInterface(contact);
  const std::string at = contact.target.at.text();
  const int rank = contact.target.clientRank;
  switch (dialed.kind) {
    case Dialed::Kind::Open:
      break;
    case Dialed::Kind::Stopped:
      return dialed.why;
    case Dialed::Kind::OwnTrouble:
      return fail(ncclSystemError, "Bootstrap: rank {} cannot connect to {} at {}: {}{}", rank, contact.whom, at,
                  errnoText(dialed.error), socketRemedy(dialed.error));
    case Dialed::Kind::NobodyListens:
      return fail(ncclRemoteError,
                  "Bootstrap: cannot connect to {} at {}: {}; has that process ended, was the id used "
                  "before, or does a firewall or a wrong interface (NCCL_SOCKET_IFNAME) stand between?{}",
                  contact.whom, at, errnoText(dialed.error), lost);
    case Dialed::Kind::Silent:
      return fail(ncclRemoteError,
                  "Bootstrap: {} at {} has not answered rank {} for {} ms, although its port is open: is that process "
                  "stopped (SIGSTOP, a debugger), has it no file descriptors left (its log says so), or has it ended "
                  "while a child that it forked holds its sockets?{}{}",
                  contact.whom, at, rank, dialed.waited.count(), ownShortage(), lost);
    case Dialed::Kind::TurnedAway:
      return fail(ncclRemoteError,
                  "Bootstrap: {} at {} closed all connections of rank {} before it had answered: does another program "
                  "listen there, or do more clients knock than it can look at?{}",
                  contact.whom, at, rank, lost);
    case Dialed::Kind::Refused:
      return fail(ncclInvalidUsage, "Bootstrap: who listens in place of {} at {} {}{}", contact.whom, at,
                  otherSide(dialed), lost);
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Link>> makeContact(const Contact& contact, ConnectionLoop& loop, const Abort* abort) {
  DialLimits limits{contact.listening, contact.deadline, contact.answer, abort};
  if (contact.peer >= 0) limits.refusals = kGone;
  limits.stop = [&]() -> Status {
    if (!contact.whateverFailed) TRY(loop.checkFailure());
    if (!loop.hasLeft(contact.peer)) return Status();
    return fail(ncclRemoteError, "Bootstrap: {}, but is to be connected with", loop.describeDeparture(contact.peer));
  };
  Dialed dialed = dial(contact.target, limits);
  if (dialed.kind == Dialed::Kind::Open) return std::move(dialed.link);
  return failure(contact, dialed);
}

}  // namespace tutti::bootstrap
