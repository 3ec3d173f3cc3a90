#include "comm/connect/connect.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <utility>

#include "base/hwloc/binding.h"
#include "base/threads/activity.h"
#include "comm/connect/attempt.h"
#include "comm/connect/awaited_peers.h"
#include "comm/connect/exchange.h"
#include "comm/connect/report.h"

namespace tutti::comm {

namespace {

using Pause = std::chrono::microseconds;
constexpr Pause kShortestPause{50};
constexpr Pause kLongestPause{1000};

/// Takes links from phase to phase.
class Connector {
 public:
  explicit Connector(const ConnectContext& context) : context_(context), exchange_(context.control) {}

  /// Opens our end with the first transport from the attempt's current one on that reaches the peer, and offers it.
  Status begin(LinkAttempt& attempt) const;
  /// Advances every attempt whose peer's message has come; whether there was any. Never waits. An error means that the
  /// exchange itself broke down, or that a peer that must not be late is.
  Result<bool> advanceArrived(std::span<LinkAttempt> attempts) const;
  /// What has become of an attempt that is connected.
  OpenLink take(LinkAttempt&& attempt) const {
    Fallback fallback = fallbackOf(attempt, endsOf(attempt));
    OpenLink link{attempt.request, {}, std::move(fallback), attempt.transport};
    for (auto& endpoint : attempt.endpoints) link.endpoints.push_back(std::move(endpoint));
    return link;
  }

 private:
  LinkEnds endsOf(const LinkAttempt& attempt) const {
    return {context_.peers[static_cast<std::size_t>(context_.control.rank())],
            context_.peers[static_cast<std::size_t>(attempt.request.peer)]};
  }
  transport::Transport& transportOf(const LinkAttempt& attempt) const {
    return *context_.transports[attempt.transport];
  }

  Status chooseTransport(LinkAttempt& attempt) const;
  Status open(LinkAttempt& attempt) const;
  void enter(LinkAttempt& attempt, LinkPhase phase) const;
  /// Advances one attempt, if its peer's message has come, or what it waits for itself; whether there was anything.
  Result<bool> advanceOne(LinkAttempt& attempt) const;
  Status advance(LinkAttempt& attempt) const;
  Status connect(LinkAttempt& attempt) const;
  Result<bool> join(LinkAttempt& attempt) const;
  Result<bool> meet(LinkAttempt& attempt) const;
  Status conclude(LinkAttempt& attempt) const;
  /// Says whether our side is good, and waits for the peer to say so.
  Status say(LinkAttempt& attempt, LinkPhase phase) const;
  Status hear(LinkAttempt& attempt) const;
  /// The same where the peer may have said it already, or may yet; whether it has given up.
  Result<bool> gaveUp(LinkAttempt& attempt, LinkPhase phase) const;

  const ConnectContext& context_;
  LinkExchange exchange_;
};

Status Connector::chooseTransport(LinkAttempt& attempt) const {
  const LinkEnds ends = endsOf(attempt);
  for (; attempt.transport < context_.transports.size(); ++attempt.transport) {
    const transport::Transport& transport = transportOf(attempt);
    ASSIGN(const bool reaches, transport.reachable(ends.self, ends.peer));
    if (reaches) return {};
    attempt.noteReason(transport.name(), transport.whyNot(ends.self, ends.peer));
    if (attempt.onlyThat) return lostTransport(attempt, ends, transport.name());
  }
  return noTransport(attempt, ends);
}

Status Connector::open(LinkAttempt& attempt) const {
  transport::Transport& transport = transportOf(attempt);
  const LinkEnds ends = endsOf(attempt);
  const device::ConnKind kind = attempt.request.kind;
  const bool oneOfMany = transport.proxied() && kind == device::ConnKind::Mesh;
  const device::SlotBytes& slots =
      oneOfMany ? context_.proxiedMeshSlots : context_.slotBytes[static_cast<std::size_t>(kind)];
  int more = std::popcount(attempt.request.channels);
  for (const int channel : channelsIn(attempt.request.channels)) {
    const transport::LinkSpec link{ends.self, ends.peer, channel, slots, kind, --more};
    ASSIGN(auto endpoint, attempt.sends() ? transport.openSend(link) : transport.openRecv(link));
    attempt.endpoints.push_back(std::move(endpoint));
  }
  return {};
}

/// A late peer is bounded in every phase by nothing but its life: it may be waiting for a third rank that is late.
void Connector::enter(LinkAttempt& attempt, LinkPhase phase) const {
  attempt.phase = phase;
  attempt.until = context_.peersMayBeLate ? Deadline::never() : Deadline::in(context_.control.timeout());
}

Status Connector::begin(LinkAttempt& attempt) const {
  TRY(chooseTransport(attempt));
  attempt.noteError(open(attempt));
  attempt.owesHandles = attempt.good && attempt.sends() && transportOf(attempt).callsFirst();
  if (!attempt.owesHandles) TRY(exchange_.sendHandles(attempt));
  enter(attempt, LinkPhase::Handles);
  return {};
}

Status Connector::say(LinkAttempt& attempt, LinkPhase phase) const {
  TRY(exchange_.sendWord(attempt, phase));
  enter(attempt, phase);
  return {};
}

Status Connector::hear(LinkAttempt& attempt) const {
  if (!attempt.peersWord) {
    ASSIGN(attempt.peersWord, exchange_.recvWord(attempt, attempt.phase));
  }
  if (!*std::exchange(attempt.peersWord, std::nullopt)) attempt.good = false;
  return {};
}

Result<bool> Connector::gaveUp(LinkAttempt& attempt, LinkPhase phase) const {
  if (!attempt.peersWord && exchange_.arrived(attempt, phase)) {
    ASSIGN(attempt.peersWord, exchange_.recvWord(attempt, phase));
  }
  return attempt.peersWord == false;
}

Status Connector::connect(LinkAttempt& attempt) const {
  ASSIGN(const std::vector<transport::ConnectHandle> handles, exchange_.recvHandles(attempt));
  if (handles.empty()) attempt.good = false;
  if (attempt.good) attempt.noteError(attempt.connectAll(handles));
  enter(attempt, LinkPhase::Joining);
  return join(attempt).status();
}

/// Whether joining has come to its end, good or bad: the peer has then been told. A peer that gave up says so with the
/// word that it would otherwise say after its own probe.
Result<bool> Connector::join(LinkAttempt& attempt) const {
  bool ended = !attempt.good;
  if (!ended) {
    const Result<bool> ready = attempt.allReady();
    attempt.noteError(ready.status());
    ended = !ready.ok() || ready.value();
  }
  if (attempt.owesHandles && (ended || attempt.allCall())) {
    attempt.owesHandles = false;
    TRY(exchange_.sendHandles(attempt));
  }
  ASSIGN(const bool gone, gaveUp(attempt, LinkPhase::Written));
  if (gone) attempt.good = false;
  if (!ended && !gone) return false;
  if (attempt.good) attempt.noteError(attempt.writeProbes());
  TRY(say(attempt, LinkPhase::Written));
  return true;
}

/// The same for the messages that the ends send each other themselves. Before both ends are ready there are none: a
/// network may wait in its calls until the peer has accepted, and the peer for this rank to do so on another link.
Result<bool> Connector::meet(LinkAttempt& attempt) const {
  bool ended = !attempt.good;
  if (!ended) {
    const Result<bool> met = attempt.allMet();
    attempt.noteError(met.status());
    ended = !met.ok() || met.value();
  }
  ASSIGN(const bool gone, gaveUp(attempt, LinkPhase::Verdict));
  if (gone) attempt.good = false;
  if (!ended && !gone) return false;
  if (attempt.good) attempt.noteError(attempt.checkProbes());
  TRY(say(attempt, LinkPhase::Verdict));
  return true;
}

/// Only after both sides have checked, and cleared what they checked, may a kernel write.
Status Connector::conclude(LinkAttempt& attempt) const {
  TRY(hear(attempt));
  const LinkEnds ends = endsOf(attempt);
  if (attempt.good) {
    reportLink(attempt, ends);
    attempt.phase = LinkPhase::Connected;
    return {};
  }
  const std::string_view failed = transportOf(attempt).name();
  if (attempt.onlyThat) return lostTransport(attempt, ends, failed);
  warnOfRetry(attempt, ends, failed);
  attempt = std::move(attempt).next(failed);
  return begin(attempt);
}

Status Connector::advance(LinkAttempt& attempt) const {
  switch (attempt.phase) {
    case LinkPhase::Handles:
      return connect(attempt);
    case LinkPhase::Written:
      TRY(hear(attempt));
      enter(attempt, LinkPhase::Meeting);
      return meet(attempt).status();
    case LinkPhase::Verdict:
      return conclude(attempt);
    case LinkPhase::Joining:
    case LinkPhase::Meeting:
    case LinkPhase::Connected:
      return {};
  }
  return {};
}

Result<bool> Connector::advanceOne(LinkAttempt& attempt) const {
  if (attempt.phase == LinkPhase::Joining) return join(attempt);
  if (attempt.phase == LinkPhase::Meeting) return meet(attempt);
  if (!attempt.peersWord && !exchange_.arrived(attempt, attempt.phase)) return false;
  TRY(advance(attempt));
  return true;
}

Result<bool> Connector::advanceArrived(std::span<LinkAttempt> attempts) const {
  bool any = false;
  for (LinkAttempt& attempt : attempts) {
    if (attempt.phase == LinkPhase::Connected) continue;
    ASSIGN(const bool advanced, advanceOne(attempt));
    if (!advanced && attempt.until.expired()) return peerOverdue(endsOf(attempt), context_.control.timeout());
    any = any || advanced;
  }
  return any;
}

/// Keeps what is awaited up to date, as long as it lives.
class Awaiting {
 public:
  explicit Awaiting(AwaitedPeers* told) : told_(told) {}
  Awaiting(const Awaiting&) = delete;
  ~Awaiting() {
    if (told_ != nullptr) told_->set({});
  }
  void tell(std::span<const LinkAttempt> attempts) const {
    if (told_ == nullptr) return;
    std::vector<LinkRequest> links;
    for (const LinkAttempt& attempt : attempts) {
      if (attempt.phase == LinkPhase::Handles) links.push_back(attempt.request);
    }
    told_->set(std::move(links));
  }

 private:
  AwaitedPeers* const told_;
};

const char* waitIn(LinkPhase phase) {
  switch (phase) {
    case LinkPhase::Handles:
      return "its end of a connection";
    case LinkPhase::Joining:
      return "a connection that is being made over the transport";
    case LinkPhase::Written:
      return "its test of a connection";
    case LinkPhase::Meeting:
      return "the first messages over a connection";
    case LinkPhase::Verdict:
      return "its word that a connection works";
    case LinkPhase::Connected:
      break;
  }
  return "nothing";
}

/// For who asks what this thread waits for: the first link that is not there.
void noteWait(WaitNote& note, std::span<const LinkAttempt> attempts) {
  for (const LinkAttempt& attempt : attempts) {
    if (attempt.phase != LinkPhase::Connected) return note.now(waitIn(attempt.phase), attempt.request.peer);
  }
}

/// Sleeps longer and longer while nothing comes. Nothing wakes it: a message is found a pause later at most.
class Idle {
 public:
  void after(bool anythingCame) {
    if (anythingCame) {
      pause_ = kShortestPause;
      return;
    }
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, kLongestPause);
  }

 private:
  Pause pause_ = kShortestPause;
};

Result<std::vector<OpenLink>> complete(const ConnectContext& context, std::vector<LinkAttempt> attempts) {
  const BindingScope oneViewForAllMemory;
  const Connector connector(context);
  WaitNote note(nullptr, -1);
  for (LinkAttempt& attempt : attempts) TRY(connector.begin(attempt));

  Idle idle;
  const Awaiting awaiting(context.awaited);
  awaiting.tell(attempts);
  const auto connected = [](const LinkAttempt& attempt) { return attempt.phase == LinkPhase::Connected; };
  while (!std::all_of(attempts.begin(), attempts.end(), connected)) {
    noteWait(note, attempts);
    ASSIGN(const bool any, connector.advanceArrived(attempts));
    if (any) awaiting.tell(attempts);
    idle.after(any);
  }

  std::vector<OpenLink> links;
  links.reserve(attempts.size());
  for (LinkAttempt& attempt : attempts) links.push_back(connector.take(std::move(attempt)));
  return links;
}

}  // namespace

Result<std::vector<OpenLink>> connectLinks(const ConnectContext& context, std::span<const LinkRequest> requests) {
  std::vector<LinkAttempt> attempts(requests.size());
  for (std::size_t i = 0; i < attempts.size(); ++i) attempts[i].request = requests[i];
  return complete(context, std::move(attempts));
}

Result<std::vector<OpenLink>> reconnectLinks(const ConnectContext& context, std::span<const KnownLink> links) {
  std::vector<LinkAttempt> attempts(links.size());
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    attempts[i].request = links[i].request;
    attempts[i].transport = links[i].transport;
    attempts[i].onlyThat = true;
  }
  return complete(context, std::move(attempts));
}

}  // namespace tutti::comm
