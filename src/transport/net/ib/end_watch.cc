// What an end of a connection over verbs hears of its peer and of its NICs, apart from completions.
#include <fmt/core.h>

#include "base/log.h"
#include "transport/net/ib/end.h"
#include "transport/net/ib/nic/health.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"

namespace tutti::net::ib {

namespace {

/// How often an end that has nothing to do looks at peer and NICs.
constexpr milliseconds kLookEvery{5};
/// So many times longer an end waits for a port while it agrees with its peer: what they agree on may be another path.
constexpr int kAgreementPatience = 3;

}  // namespace

Status IbEnd::onPeer() {
  switch (link_->control->look()) {
    case ControlSocket::Peer::There:
      TRY(hear());
      break;
    case ControlSocket::Peer::Left:
      return onFarewell();
    case ControlSocket::Peer::Gone:
      if (const std::string failed = failure(); !failed.empty()) {
        return breakWith(fail(ncclRemoteError, "{} The peer's process is gone", failed));
      }
      return breakQuietly(fmt::format(
          "NET/IB : Connection closed by remote peer {} while {}: its process or host is gone", place(), verb()));
  }
  if (!suspicion_.empty() && suspectUntil_.expired()) return breakWith(fail(ncclRemoteError, "{}", suspicion_));
  return {};
}

/// While an agreement is under way it asks itself.
Status IbEnd::hear() {
  while (agreement_ != nullptr && !agreement_->halted() && !agreement_->peerHalts()) {
    const auto frame = link_->control->heard();
    if (!frame) return {};
    const bool tries = frame->kind == ControlFrame::Kind::Try || frame->kind == ControlFrame::Kind::Answer;
    if (tries && trials_ != nullptr) trials_->hear(*frame);
    if (tries) continue;
    if (const Status heard = agreement_->hear(*frame); !heard.ok()) return breakWith(heard);
    if (frame->revived.any()) healthSeen_ = 0;  // of those that the peer wants back some may be down here
  }
  return {};
}

/// Whether it is a failure that the peer is gone is known to those who may hear its goodbye elsewhere: they tell what
/// is written here. Until then it is no more than the thread's last error.
Status IbEnd::breakQuietly(const std::string& why) {
  std::string said;
  {
    const ErrorsAsInfo quiet;
    breakWith(fail(ncclRemoteError, "{}", why)).ignore();
    said = lastErrorText();
  }
  recallLastError(said);
  return broken_;
}

std::string IbEnd::failure() const {
  return suspicion_.empty() && agreement_ != nullptr ? agreement_->why() : suspicion_;
}

Status IbEnd::onFarewell() {
  const std::string failed = failure();
  suspicion_.clear();
  suspectUntil_ = Deadline::never();
  if (!needsPeer(!failed.empty() || halted())) return {};
  return breakQuietly(fmt::format("NET/IB : Remote peer {} has closed the connection, in order, while {}{}{}", place(),
                                  verb(), failed.empty() ? "" : ". ", failed));
}

/// A queue pair that is out of order need not say so of any work: there may be none.
Status IbEnd::lookAtQueuePairs() {
  QueuePairs& pairs = *link_->pairs;
  for (std::size_t i = 0; i < pairs.count(); ++i) {
    const std::string why = pairs.has(i) ? pairs[i].port().nic->health().failureOf(pairs[i].number()) : "";
    if (why.empty()) continue;
    const std::string said =
        fmt::format("NET/IB : The NIC says {} while {} with {}, from {}", why, verb(), place(), pairs.pathText(i));
    if (goesOnWithout(pairs.besides(i), said)) continue;
    return breakWith(fail(ncclSystemError, "{}", said));
  }
  return {};
}

std::uint64_t IbEnd::healthChanges() const {
  std::uint64_t changes = 0;
  for (const IbPort* port : link_->pairs->ports()) changes += port->nic->health().changes();
  return changes;
}

Status IbEnd::lookAtPort(std::size_t port) {
  const IbPort& one = *link_->pairs->ports()[port];
  const NicHealth& health = one.nic->health();
  const Strands strands = link_->pairs->ofPort(port);
  const auto lose = [&](const std::string& why) { return goesOnWithout(strands, why); };
  if (const std::string why = health.deviceFailure(); !why.empty() && link_->options.failsOnEvents) {
    const std::string said =
        fmt::format("NET/IB : {} has failed ({}) while {} with {}: look at dmesg", one.text(), why, verb(), place());
    return lose(said) ? Status() : breakWith(fail(ncclSystemError, "{}", said));
  }
  SteadyClock::time_point since;
  if (!health.isDown(one.number, &since)) return {};
  if (lose(fmt::format("The port {} is down: look at the cable, the switch and ip link", one.text()))) return {};
  anyPortDown_ = true;
  const auto now = SteadyClock::now();
  if (!stuckSince_) stuckSince_ = now;
  const auto bound = link_->options.lossBound() * (halted() ? kAgreementPatience : 1);
  if (now - *stuckSince_ < bound) return {};
  return breakWith(
      fail(ncclRemoteError,
           "NET/IB : The port {} has been down for {:.1f} s while {} with {}: look at the cable, the switch "
           "and ip link; NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT say how long it may be",
           one.text(), secondsSince(since), verb(), place()));
}

Status IbEnd::lookAtNics() {
  healthSeen_ = healthChanges();
  anyPortDown_ = false;
  // What the NICs of a connection do that has ended in order is nobody's trouble.
  if (link_->control->look() == ControlSocket::Peer::Left) return {};
  // Work that has failed says more, and whether its peer has left is still to be seen.
  if (link_->options.failsOnEvents && suspicion_.empty()) TRY(lookAtQueuePairs());
  for (std::size_t port = 0; port < link_->pairs->ports().size(); ++port) TRY(lookAtPort(port));
  if (!anyPortDown_) stuckSince_.reset();
  return {};
}

void IbEnd::tryPaths() {
  if (trials_ == nullptr || agreement_->due() || link_->control->last() != ControlSocket::Peer::There) return;
  if (const Strands works = trials_->advance(agreement_->lost()); works.any()) agreement_->revive(works);
}

Status IbEnd::look() {
  const auto now = SteadyClock::now();
  if (now < lookAgain_) return {};
  lookAgain_ = now + kLookEvery;
  TRY(onPeer());
  tryPaths();
  return anyPortDown_ || healthChanges() != healthSeen_ ? lookAtNics() : Status();
}

}  // namespace tutti::net::ib
