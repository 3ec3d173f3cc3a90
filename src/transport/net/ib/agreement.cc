#include "transport/net/ib/agreement.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "base/log.h"
#include "transport/net/ib/control.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/queue_pairs.h"

namespace tutti::net::ib {

namespace {

using Kind = ControlFrame::Kind;

/// A NIC that works gives back what was posted at once; of another nothing more is to be had.
constexpr milliseconds kDrainBound{1000};
/// Changes of state take a millisecond; a strand whose queue pair cannot be connected by then is left out.
constexpr milliseconds kConnectBound{2000};

}  // namespace

Agreement::Agreement(Role role, QueuePairs& pairs, ControlSocket& control, AgreementEnd& end, std::string who)
    : role_(role), pairs_(pairs), control_(control), end_(end), who_(std::move(who)) {
  // What stands at the receiver, as both know; what the sender could not connect is for the first agreement.
  for (std::size_t i = 0; i < pairs.count(); ++i) active_.set(i, pairs.remote().numbers[i] != 0);
  if (role == Role::Receiver) active_ &= ~pairs.refused();
  lost_ = pairs.all() & ~active_;
  why_ = pairs.refusal();
  if (lost_.any()) report(pairs.all());
  if (role == Role::Sender && pairs.refused().any()) lose(pairs.refused(), pairs.refusal());
  if (!wanted_) why_.clear();
}

bool Agreement::canLose(const Strands& strands) const {
  return (pairs_.all() & ~lost_ & ~strands).any();
}

void Agreement::lose(const Strands& strands, const std::string& why) {
  lost_ |= strands;
  revived_ &= ~strands;
  if (why_.empty()) why_ = why;
  wanted_ = true;
}

void Agreement::revive(const Strands& strands) {
  lost_ &= ~strands;
  revived_ |= strands;
  wanted_ = true;
}

Status Agreement::hear(const ControlFrame& frame) {
  if (frame.kind != Kind::Halts || frame.era != era_ + 1) {
    return fail(ncclInternalError, "NET/IB : {} says something to {} that does not belong there ({}, era {} after {})",
                pairs_.remote().who.data(), who_, static_cast<char>(frame.kind), frame.era, era_);
  }
  peerHalts_ = true;
  lost_ &= ~frame.revived;
  return {};
}

void Agreement::tell(Kind kind, const Strands& strands) {
  ControlFrame frame{.kind = kind, .era = era_ + 1, .strands = strands};
  if (kind == Kind::Pairs) frame.side = end_.side();
  frame.revived = revived_;
  if (kind == Kind::Stopped) {
    frame.rows = end_.rowsSeen();
    why_.copy(frame.why.data(), frame.why.size() - 1);
  }
  control_.tell(frame);
}

/// The peer's next. What a try of a path has to say is of no interest any more: it ended when this end stopped.
Result<std::optional<ControlFrame>> Agreement::take(Kind kind) {
  while (auto frame = control_.heard()) {
    if (frame->kind == Kind::Try || frame->kind == Kind::Answer) continue;
    // Both have stopped on their own.
    if (frame->kind == Kind::Halts && kind == Kind::Stopped) continue;
    if (frame->kind == kind && frame->era == era_ + 1) return frame;
    return fail(ncclInternalError, "NET/IB : {} says {} of era {} where {} waits for {} of era {}",
                pairs_.remote().who.data(), static_cast<char>(frame->kind), frame->era, who_, static_cast<char>(kind),
                era_ + 1);
  }
  return std::optional<ControlFrame>();
}

/// From here on nothing reaches this end's memory, and nothing leaves it.
Status Agreement::stop() {
  pairs_.keep({});
  TRY(end_.stopped(pairs_.all() & ~lost_));
  told_ = lost_;
  tell(Kind::Stopped, lost_);
  step_ = Step::Stopped;
  return {};
}

Status Agreement::noneLeft() {
  return fail(ncclRemoteError,
              "NET/IB : No port is left between {} and {}. Here: {}. There: {}. Look at the cables, the switches and "
              "ip link",
              who_, pairs_.remote().who.data(), why_.empty() ? "nothing has failed" : why_,
              peerWhy_.empty() ? "nothing has failed" : peerWhy_);
}

Status Agreement::pairUp() {
  if (strands_.none()) return noneLeft();
  strands_ = pairs_.make(strands_, era_ + 1);
  tell(Kind::Pairs, strands_);
  step_ = Step::Pairing;
  return {};
}

/// False: not yet. Whoever does not stand in time is left out.
bool Agreement::connect() {
  const bool all = pairs_.connect(strands_, remote_);
  if (!all && !until_.expired()) return false;
  for (std::size_t i = 0; i < pairs_.count(); ++i) strands_.set(i, strands_[i] && pairs_.connected(i));
  if (role_ == Role::Sender) tell(Kind::Ready, strands_);
  step_ = Step::Awaiting;
  return true;
}

/// A receiver has everything posted before its sender hears that it may send.
Status Agreement::begin(const Strands& peers) {
  strands_ &= peers;
  if (strands_.none()) {
    if (role_ == Role::Receiver) tell(Kind::Ready, strands_);
    return noneLeft();
  }
  pairs_.keep(strands_);
  const Strands before = std::exchange(active_, strands_);
  lost_ |= pairs_.all() & ~strands_;
  revived_.reset();
  peerHalts_ = false;
  TRY(end_.resume(strands_, peers_));
  if (role_ == Role::Receiver) tell(Kind::Ready, strands_);
  ++era_;
  step_ = Step::Running;
  report(before);
  // What has failed meanwhile is for the next one.
  wanted_ = (active_ & lost_).any();
  if (!wanted_) why_.clear();
  peerWhy_.clear();
  return {};
}

/// False: not yet.
Result<bool> Agreement::step() {
  switch (step_) {
    case Step::Running:
      // Before anything of it is to be seen: the peer must not take it for failures of healthy ports.
      tell(Kind::Halts, lost_);
      pairs_.breakUp();
      until_ = Deadline::in(kDrainBound);
      step_ = Step::Draining;
      return true;
    case Step::Draining: {
      const bool over = end_.drained() || until_.expired();
      if (over) TRY(stop());
      return over;
    }
    case Step::Stopped: {
      ASSIGN(const auto frame, take(Kind::Stopped));
      if (!frame) return false;
      peers_ = frame->rows;
      peerWhy_ = frame->why.data();
      strands_ = pairs_.all() & ~told_ & ~frame->strands;
      TRY(pairUp());
      return true;
    }
    case Step::Pairing: {
      ASSIGN(const auto frame, take(Kind::Pairs));
      if (!frame) return false;
      remote_ = frame->side;
      until_ = Deadline::in(kConnectBound);
      step_ = Step::Connecting;
      return true;
    }
    case Step::Connecting:
      return connect();
    case Step::Awaiting: {
      ASSIGN(const auto frame, take(Kind::Ready));
      if (frame) TRY(begin(frame->strands));
      return frame.has_value();
    }
  }
  return false;
}

Status Agreement::advance() {
  control_.look();
  for (bool further = true; further;) {
    ASSIGN(further, step());
    if (!halted()) return {};
  }
  return {};
}

std::string Agreement::pathsText(const Strands& strands) const {
  std::set<std::string> paths;
  for (std::size_t i = 0; i < pairs_.count(); ++i) {
    if (!strands[i]) continue;
    const PortAddress& far = pairs_.remote().ports[pairs_.remotePortOf(i)];
    paths.insert(fmt::format("{} to {}:{}", pairs_.ports()[pairs_.portOf(i)]->text(), far.nic.data(), far.number));
  }
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : ", ") + path;
  return text;
}

void Agreement::report(const Strands& before) {
  const char* const verb = role_ == Role::Sender ? "sending to" : "receiving from";
  const char* const peer = pairs_.remote().who.data();
  const std::string left = fmt::format("{} of {} queue pairs, {}", active_.count(), pairs_.count(), pathsText(active_));
  if (const Strands gone = before & ~active_; gone.any()) {
    const std::string why =
        !why_.empty() ? why_ : fmt::format("the peer says: {}", peerWhy_.empty() ? "it is not there" : peerWhy_);
    warn("NET/IB : {}, {} {}: goes on without {}, over {}. Reason: {}", who_, verb, peer, pathsText(gone), left, why);
  }
  if (const Strands back = active_ & ~before; back.any()) {
    warn("NET/IB : {}, {} {}: {} is back; goes on over {}", who_, verb, peer, pathsText(back), left);
  }
}

}  // namespace tutti::net::ib
