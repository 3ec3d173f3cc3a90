// Signs of life, and ranks that give none: they have failed only for who waits for them.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/patience.h"

namespace tutti::bootstrap {
namespace {

/// Who begins to wait gives a rank that seems silent so much time: it may just have come back.
constexpr milliseconds kSilenceGrace{1000};
/// To who does not read, signs of life are sent more seldom: they fill its buffers, which TCP takes for a failure.
constexpr int kSeldom = 16;

}  // namespace

void ConnectionLoop::tendNeighbours() {
  const auto now = SteadyClock::now();
  const auto since = now - tended_;
  if (since < signInterval(patience_)) return;
  tended_ = now;
  const SharedBytes nothing;
  // Who was away itself, stopped or without a processor, has not listened.
  const bool wasAway = since > options_.peerTimeout / 2;
  for (auto& [name, entry] : s_.links) {
    if (!givesSigns(entry.role) || entry.left || !entry.link->open()) continue;
    if (wasAway) entry.heard = now;
    if (entry.silent == 0 || wasAway || ++entry.silent % kSeldom == 0) {
      sendOn(name, entry, FrameType::Alive, patienceTag(options_.peerTimeout), nothing);
    }
    const bool explained = entry.knows && s_.failure;
    if (now - entry.heard <= options_.peerTimeout || explained || entry.silent > 0 || s_.stopping) continue;
    if (entry.role != Role::Root || !s_.rootDone) onSilence(name, entry);
  }
}

void ConnectionLoop::onSilence(Name name, Entry& entry) {
  if (entry.role == Role::KinIn || entry.role == Role::KinOut) {
    entry.left = true;
    return loseKin(entry.peer, fmt::format("it has given no sign of life for {} ms", options_.peerTimeout.count()));
  }
  entry.silent = 1;
  if (entry.role == Role::Root) {
    entry.left = true;  // how it ends is no news any more
    return onRootSilence(entry.link->peer());
  }
  Notice notice = silenceOf(entry.peer, entry.link->peer().hostText(), options_.peerTimeout);
  flood(FrameType::Silence, entry.peer, std::make_shared<const Bytes>(encodeNotice(notice)), name);
  // Seen here: who waits already has waited long enough.
  s_.silent[entry.peer] = {std::move(notice), SteadyClock::now() - kSilenceGrace};
}

Notice ConnectionLoop::silenceOf(int rank, const std::string& hostText, milliseconds waited) const {
  std::string host;
  if (!s_.table.empty()) host = textOf(s_.table[static_cast<std::size_t>(rank)].host);
  const std::string who = host.empty() ? rankText(rank, hostText) : describeLocked(rank);
  return {
      rank, ncclRemoteError, host,
      fmt::format(
          "Bootstrap: {} has given rank {} no sign of life for {} ms: is its process stopped (SIGSTOP, a "
          "debugger), its host frozen, or the network between them cut? TUTTI_PEER_TIMEOUT_MS sets the time allowed",
          who, options_.rank, waited.count()),
      Cause::Silent};
}

void ConnectionLoop::suspectSilence(int rank, milliseconds waited) {
  const std::lock_guard lock(mutex_);
  if (s_.stopping || s_.failure || s_.left.contains(rank) || s_.silent.contains(rank)) return;
  if (isLinkedLocked(rank)) return;  // meanwhile it has called this one, and is heard or missed there
  Notice notice = silenceOf(rank, "", waited);
  flood(FrameType::Silence, rank, std::make_shared<const Bytes>(encodeNotice(notice)), 0);
  s_.silent[rank] = {std::move(notice), SteadyClock::now() - kSilenceGrace};
  poller_.wake();
}

void ConnectionLoop::onSignOfLife(Name name, Entry& entry) {
  entry.silent = 0;
  s_.silent.erase(entry.peer);
  flood(FrameType::Silence, entry.peer, std::make_shared<const Bytes>(), name);
  // It may have heard less of this rank than it should.
  sendOn(name, entry, FrameType::Alive, patienceTag(options_.peerTimeout), SharedBytes());
}

void ConnectionLoop::onSilenceFrame(Name name, const Frame& frame) {
  const int rank = frame.header.tag;
  // What neighbours said of this rank while it was away has reached it first.
  if (rank < 0 || rank >= options_.nRanks || rank == options_.rank) return;
  auto notice = decodeNotice(frame.payload);
  if (!notice && !frame.payload.empty()) return;
  flood(FrameType::Silence, rank, std::make_shared<const Bytes>(frame.payload), name);
  if (notice) {
    s_.silent[rank] = {std::move(*notice), SteadyClock::now()};
  } else {
    s_.silent.erase(rank);
  }
}

/// Whether its silence is the failure that is known.
bool ConnectionLoop::wasSilent(int rank) const {
  return s_.failure && s_.failure->cause == Cause::Silent && s_.failure->rank == rank;
}

Deadline ConnectionLoop::endOfSilence() const {
  Deadline end = Deadline::never();
  if (s_.waits == 0 || s_.failure || s_.stopping) return end;
  const auto grace = std::min(kSilenceGrace, options_.peerTimeout / 2);
  for (const auto& [rank, silence] : s_.silent) {
    end = end.earlierOf(Deadline::at(std::max(silence.known, s_.waitsSince) + grace));
  }
  return end;
}

void ConnectionLoop::tellSilence() {
  if (!endOfSilence().expired()) return;
  const auto first = std::min_element(s_.silent.begin(), s_.silent.end(), [](const auto& one, const auto& other) {
    return one.second.known < other.second.known;
  });
  record(first->second.notice, 0, true);
}

void ConnectionLoop::waitLocked(int change) {
  if (s_.waits == 0) s_.waitsSince = SteadyClock::now();
  s_.waits += change;
  if (!s_.silent.empty()) poller_.wake();
}

void ConnectionLoop::wait(int change) {
  const std::lock_guard lock(mutex_);
  waitLocked(change);
}

}  // namespace tutti::bootstrap
