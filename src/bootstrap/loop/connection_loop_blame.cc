// Who is to blame: taking failures in, telling them, and preferring the cause to what came of it.
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/host.h"
#include "base/log.h"
#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/known_losses.h"

namespace tutti::bootstrap {
namespace {

/// Of what does not pass when a rank is resumed.
constexpr std::uint32_t kForever = UINT32_MAX;

/// Whether the rank in question may be resumed, and work on.
bool goesOn(const Notice& notice) {
  return notice.cause == Cause::Failed || notice.cause == Cause::Observed;
}

/// As tables of ranks have it.
std::string tableName(std::string_view host) {
  FixedText<32> name;
  setText(name, host);
  return textOf(name);
}

}  // namespace

Status ConnectionLoop::blame() {
  const Notice& why = *s_.failure;
  if (std::exchange(s_.failureTold, true)) return Status(why.code);
  return fail(why.code, "{}", why.text);
}

bool ConnectionLoop::isOver(const Notice& notice) const {
  return goesOn(notice) && notice.era < s_.era;
}

void ConnectionLoop::passOn(const Notice& notice, Name from, Name except) {
  const auto payload = std::make_shared<const Bytes>(encodeNotice(notice));
  flood(FrameType::Notice, 0, payload, except);
  // Where a rank has left, the tree may be in parts.
  if (!s_.left.empty()) tellPeers(FrameType::Notice, payload);
  for (auto& [name, entry] : s_.links) {
    if (entry.role == Role::Root && name != from && !s_.rootDone) sendOn(name, entry, FrameType::Notice, 0, payload);
  }
}

void ConnectionLoop::record(Notice notice, Name from, bool tell) {
  if (s_.stopping || s_.exiting) return;
  if (from == 0) notice.era = std::max(notice.era, s_.era);
  if (isOver(notice)) {
    // Others may have to hear it; once, for it may come back.
    if (s_.over.insert({notice.rank, notice.era}).second) passOn(notice, from, from);
    return;
  }
  if (s_.failure && s_.failure->cause >= notice.cause) {
    const bool outlasts = goesOn(*s_.failure) && s_.failure->era < notice.era && !s_.later;
    if (!outlasts) return;
    passOn(notice, from, 0);
    s_.later = std::move(notice);
    return;
  }
  if (notice.cause == Cause::Aborted && notice.rank != options_.rank) {
    if (auto better = causeOfAbort(describeLocked(notice.rank))) notice = std::move(*better);
  }
  passOn(notice, from, 0);
  take(std::move(notice), tell);
}

void ConnectionLoop::take(Notice notice, bool tell) {
  const bool corrects = s_.failure.has_value();
  remember(notice);
  const bool died = notice.cause == Cause::Died || notice.cause == Cause::Silent;
  if (tell) s_.lost = PeerLost{notice.rank, notice.host, Status(notice.code), notice.text, died, corrects};
  s_.failure = std::move(notice);
  s_.failureTold = s_.failureTold && !corrects;
  changed_.notify_all();
}

void ConnectionLoop::onEndAfterFailure(int peer) {
  if (!s_.failure) return record(absenceOf(peer), 0, true);
  s_.goneAway.insert(peer);
}

Notice ConnectionLoop::absenceOf(int rank) const {
  std::string host;
  if (!s_.table.empty()) host = textOf(s_.table[static_cast<std::size_t>(rank)].host);
  return {
      rank, ncclRemoteError, host,
      fmt::format("Bootstrap: {} has gone away: its connection to rank {} ended after it had told of a failure; look "
                  "for the first error on that rank",
                  describeLocked(rank), options_.rank),
      Cause::Observed};
}

void ConnectionLoop::remember(const Notice& notice) const {
  if (notice.cause == Cause::Aborted && notice.rank == options_.rank) return;
  KnownLoss loss{tableName(notice.host), notice.pid, notice.cause, notice.text};
  if (notice.rank >= 0 && notice.rank < options_.nRanks && !s_.table.empty()) {
    const RankEntry& entry = s_.table[static_cast<std::size_t>(notice.rank)];
    loss.host = textOf(entry.host);
    loss.pid = entry.pid;
  }
  KnownLosses& losses = KnownLosses::instance();
  notice.cause == Cause::Aborted ? losses.addAbort(std::move(loss)) : losses.add(std::move(loss));
}

std::string ConnectionLoop::ownName() const {
  if (options_.device < 0) return rankText(options_.rank, hostName(), ::getpid());
  return fmt::format("rank {} (host {}, pid {}, device {})", options_.rank, hostName(), ::getpid(), options_.device);
}

Notice ConnectionLoop::ownNotice(Cause cause, ncclResult_t code, std::string text) const {
  return {options_.rank, code, tableName(hostName()), std::move(text), cause, ::getpid()};
}

std::optional<Notice> ConnectionLoop::causeOfAbort(const std::string& aborter) const {
  for (std::size_t rank = 0; rank < s_.table.size(); ++rank) {
    const RankEntry& entry = s_.table[rank];
    const std::string host = textOf(entry.host);
    // Of ranks of this process it is not known which one failed.
    if (entry.pid == ::getpid() && host == tableName(hostName())) continue;
    const auto loss = KnownLosses::instance().of(host, entry.pid, started_);
    if (!loss) continue;
    const int culprit = static_cast<int>(rank);
    const std::string who = describeLocked(culprit);
    const std::string what = loss->cause == Cause::Died ? fmt::format("{} died or lost its network", who)
                             : loss->cause == Cause::Silent
                                 ? fmt::format("{} gives no sign of life (is its process stopped?)", who)
                                 : fmt::format("{} failed in another communicator ({})", who, loss->text);
    return Notice{culprit,
                  ncclRemoteError,
                  host,
                  fmt::format("Bootstrap: {}. Another communicator has failed for that, and {} has aborted this one",
                              what, aborter),
                  loss->cause,
                  entry.pid};
  }
  return std::nullopt;
}

Notice ConnectionLoop::abortNotice() const {
  const std::string who = ownName();
  if (auto better = causeOfAbort(who)) return std::move(*better);
  return ownNotice(
      Cause::Aborted, ncclRemoteError,
      fmt::format("Bootstrap: {} aborted its communicator{}", who, KnownLosses::instance().perhapsBecause(started_)));
}

void ConnectionLoop::announce(Status why, const std::string& text, bool seenOf) {
  const std::lock_guard lock(mutex_);
  if (s_.failure) return;
  s_.failureTold = true;  // whoever announces has reported it already
  // Where arguments or settings do not fit together, others may have found the same; it is no rank's failure alone.
  const bool refused = why.code() == ncclInvalidArgument || why.code() == ncclInvalidUsage;
  const std::string told = seenOf ? fmt::format("{} (seen by {})", text, ownName())
                                  : fmt::format("{} {}: {}", ownName(), refused ? "gave up" : "failed", text);
  record(ownNotice(seenOf ? Cause::Observed : Cause::Failed, why.code(), told), 0, false);
}

void ConnectionLoop::announceLastError(Status why) {
  if (!aborted().ok()) return announceAbort();
  announce(why, lastErrorText(), why.code() == ncclRemoteError);
}

void ConnectionLoop::announceAbort() {
  const std::lock_guard lock(mutex_);
  if (s_.failure) return;
  s_.failureTold = true;  // as above
  record(abortNotice(), 0, false);
}

Status ConnectionLoop::failure() const {
  const std::lock_guard lock(mutex_);
  return s_.failure ? Status(s_.failure->code) : Status();
}

std::optional<Notice> ConnectionLoop::knownFailure() const {
  const std::lock_guard lock(mutex_);
  return s_.failure;
}

Status ConnectionLoop::checkFailure() {
  const std::lock_guard lock(mutex_);
  return s_.failure ? blame() : Status();
}

/// What was under way is lost: this rank has failed. Where there is no memory to say so, peers see their connections
/// end, and callers here get a text that needs none.
void ConnectionLoop::onNoMemory() {
  try {
    Notice notice = ownNotice(Cause::Failed, ncclSystemError,
                              fmt::format("{} failed: its process has no host memory left: see ulimit -v and the "
                                          "memory limit of the container",
                                          ownName()));
    notice.era = kForever;
    record(std::move(notice), 0, true);
  } catch (const std::bad_alloc&) {
    if (!s_.failure) {
      s_.failure.emplace(
          Notice{options_.rank, ncclSystemError, {}, "no host memory", Cause::Failed, ::getpid(), kForever});
      s_.lost.emplace(PeerLost{options_.rank, {}, Status(ncclSystemError), "no host memory"});
    }
    for (const auto& [name, entry] : s_.links) ::shutdown(entry.link->fd(), SHUT_RDWR);
    changed_.notify_all();
  }
}

/// Nothing comes in any more: whoever seems silent is not.
void ConnectionLoop::onBroken(int error) {
  if (std::exchange(s_.broken, true)) return;
  Notice notice =
      ownNotice(Cause::Failed, ncclSystemError,
                fmt::format("{} failed: its bootstrap's descriptors are no more: {}. Has the program, or a library in "
                            "it, closed descriptors that are not its own?",
                            ownName(), errnoText(error)));
  notice.era = kForever;
  record(std::move(notice), 0, true);
}

void ConnectionLoop::onNotice(Name name, Entry& entry, const Frame& frame) {
  auto notice = decodeNotice(frame.payload);
  if (!notice) return;
  entry.knows = true;
  record(std::move(*notice), name, true);
}

}  // namespace tutti::bootstrap
