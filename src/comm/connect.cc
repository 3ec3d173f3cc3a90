#include "comm/connect.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/log.h"

namespace tutti {

namespace {

/// What one link waits for: the peer's message of that name. Ours goes out as the phase begins. Messages carry the phase,
/// the kind and which of the two sides sent them in their tag, so that the links between one pair of ranks do not mix;
/// order within a tag is the order of the tries, hence equal on both sides.
///   Handles: how to reach the peer's buffers   -> connects, if that takes the peer's help as well: Joining
///   Joining: no message; until ready           -> writes the probe
///   Written: the peer has written its probe    -> checks ours
///   Verdict: the peer has checked              -> Connected, or Handles again with the next transport
enum class Phase : int { Handles, Joining, Written, Verdict, Connected };

constexpr int kConnectTag = 0x1000;

int tagOf(Phase phase, const LinkRequest& link, Direction senderSide) {
  const int place = static_cast<int>(phase) * device::kConnKinds + static_cast<int>(link.kind);
  return kConnectTag + place * 2 + (senderSide == Direction::Send ? 0 : 1);
}

Direction opposite(Direction d) { return d == Direction::Send ? Direction::Recv : Direction::Send; }

using Pause = std::chrono::microseconds;
constexpr Pause kShortestPause{50};
constexpr Pause kLongestPause{1000};

/// One link on its way: which transport it tries, how far it got. `good` turns false on either side's failure.
struct Attempt {
  LinkRequest request;
  std::size_t transport = 0;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  bool good = true;
  std::optional<bool> peerWritten;   ///< its word after its probe, where it came while we were joining
  Status error;          ///< ours, where it was ours
  std::string errorText;
  std::string reasons;   ///< why earlier transports are out
  Phase phase = Phase::Handles;
  Deadline until = Deadline::never();   ///< for the message of this phase
};

class Connector {
 public:
  explicit Connector(const ConnectContext& context) : context_(context) {}

  /// Opens our end with the first transport from the attempt's current one on that reaches the peer, and offers it.
  Status begin(Attempt& attempt) const;
  /// Advances every attempt whose peer's message has come; whether there was any. Never waits. An error means that the
  /// exchange itself broke down, or that a peer that must not be late is.
  Result<bool> advanceArrived(std::span<Attempt> attempts) const;
  /// Advances one attempt, if its peer's message has come, or what it waits for itself; whether there was anything.
  Result<bool> advanceOne(Attempt& attempt) const;

 private:
  const PeerInfo& self() const { return context_.peers[static_cast<std::size_t>(context_.control.rank())]; }
  const PeerInfo& peer(const Attempt& a) const { return context_.peers[static_cast<std::size_t>(a.request.peer)]; }
  Transport& transportOf(const Attempt& a) const { return *context_.transports[a.transport]; }

  Status chooseTransport(Attempt& attempt) const;
  Status open(Attempt& attempt) const;
  void enter(Attempt& attempt, Phase phase) const;
  Status advance(Attempt& attempt) const;
  Status sendHandles(Attempt& attempt) const;
  Status recvHandles(Attempt& attempt) const;
  Status sendVerdict(Attempt& attempt, Phase phase) const;
  /// What the peer says of its side at the end of a phase.
  Result<bool> recvWord(const Attempt& attempt, Phase phase) const;
  Status recvVerdict(Attempt& attempt) const;
  Status conclude(Attempt& attempt) const;
  Status overdue(const Attempt& attempt) const;
  void report(const Attempt& attempt) const;
  void explainRetry(const Attempt& attempt) const;
  /// The same wish, to be tried with the next transport.
  Attempt nextTry(Attempt failed) const;
  Result<bool> join(Attempt& attempt) const;
  static Result<bool> allReady(Attempt& attempt);
  static Status connectAll(Attempt& attempt, std::span<const ConnectHandle> handles);
  static Status writeProbes(Attempt& attempt);
  static Status check(Attempt& attempt);
  static void noteError(Attempt& attempt, Status status);
  void noteReason(Attempt& attempt, std::string_view reason) const;

  const ConnectContext& context_;
};

void Connector::noteError(Attempt& attempt, Status status) {
  if (status.ok()) return;
  attempt.good = false;
  attempt.error = status;
  attempt.errorText = lastErrorText();
}

void Connector::noteReason(Attempt& attempt, std::string_view reason) const {
  attempt.reasons += fmt::format("{}{}: {}", attempt.reasons.empty() ? "" : "; ", transportOf(attempt).name(), reason);
}

Attempt Connector::nextTry(Attempt failed) const {
  noteReason(failed, failed.error.ok() ? std::string("it was tried and does not work: its self-test did not pass, or the "
                                                      "other side could not open it")
                                       : failed.errorText);
  Attempt next;
  next.request = failed.request;
  next.transport = failed.transport + 1;
  next.reasons = std::move(failed.reasons);
  return next;
}

Status Connector::chooseTransport(Attempt& attempt) const {
  for (; attempt.transport < context_.transports.size(); ++attempt.transport) {
    const Transport& transport = transportOf(attempt);
    ASSIGN(const bool reaches, transport.reachable(self(), peer(attempt)));
    if (reaches) return {};
    noteReason(attempt, transport.whyNot(self(), peer(attempt)));
  }
  const bool sending = attempt.request.direction == Direction::Send;
  const PeerInfo& from = sending ? self() : peer(attempt);
  const PeerInfo& to = sending ? peer(attempt) : self();
  return fail(ncclSystemError, "No transport found for rank {}[{:x}] -> rank {}[{:x}] (hosts {} and {}): {}. Ranks on "
              "different hosts need a network transport, ranks on one host peer access between their devices",
              from.rank, from.busId, to.rank, to.busId, from.hostName.data(), to.hostName.data(),
              attempt.reasons.empty() ? "no transport is enabled" : attempt.reasons);
}

Status Connector::open(Attempt& attempt) const {
  Transport& transport = transportOf(attempt);
  const device::ConnKind kind = attempt.request.kind;
  const bool oneOfMany = transport.proxied() && kind == device::ConnKind::Mesh;
  const device::SlotBytes& slots =
      oneOfMany ? context_.proxiedMeshSlots : context_.slotBytes[static_cast<std::size_t>(kind)];
  for (const int channel : channelsIn(attempt.request.channels)) {
    const LinkSpec link{self(), peer(attempt), channel, slots, kind};
    const bool sending = attempt.request.direction == Direction::Send;
    ASSIGN(auto endpoint, sending ? transport.openSend(link) : transport.openRecv(link));
    attempt.endpoints.push_back(std::move(endpoint));
  }
  return {};
}

/// A late peer is bounded in every phase by nothing but its life: it may be waiting for a third rank that is late.
void Connector::enter(Attempt& attempt, Phase phase) const {
  attempt.phase = phase;
  attempt.until = context_.peersMayBeLate ? Deadline::never() : Deadline::in(context_.control.timeout());
}

/// The channels, then one handle for each (all zero where opening failed, so that the size is fixed).
Status Connector::sendHandles(Attempt& attempt) const {
  const auto channels = static_cast<std::size_t>(std::popcount(attempt.request.channels));
  std::vector<std::byte> message(sizeof(std::uint64_t) + channels * sizeof(ConnectHandle));
  const std::uint64_t good = attempt.good ? attempt.request.channels : 0;
  std::memcpy(message.data(), &good, sizeof(good));
  for (std::size_t c = 0; attempt.good && c < channels; ++c) {
    const ConnectHandle handle = attempt.endpoints[c]->handle();
    std::memcpy(message.data() + sizeof(good) + c * sizeof(handle), &handle, sizeof(handle));
  }
  return context_.control.send(attempt.request.peer, tagOf(Phase::Handles, attempt.request, attempt.request.direction), message);
}

Status Connector::recvHandles(Attempt& attempt) const {
  const auto channels = static_cast<std::size_t>(std::popcount(attempt.request.channels));
  std::vector<std::byte> message(sizeof(std::uint64_t) + channels * sizeof(ConnectHandle));
  const int tag = tagOf(Phase::Handles, attempt.request, opposite(attempt.request.direction));
  TRY(context_.control.recv(attempt.request.peer, tag, message));
  std::uint64_t peerGood = 0;
  std::memcpy(&peerGood, message.data(), sizeof(peerGood));
  if (peerGood == 0) attempt.good = false;
  if (!attempt.good) return {};
  if (peerGood != attempt.request.channels) {
    return fail(ncclInternalError, "Rank {} and rank {} want to be joined on different channels: {:#x} and {:#x}",
                self().rank, attempt.request.peer, attempt.request.channels, peerGood);
  }
  std::vector<ConnectHandle> handles(channels);
  std::memcpy(handles.data(), message.data() + sizeof(peerGood), channels * sizeof(ConnectHandle));
  noteError(attempt, connectAll(attempt, handles));
  return {};
}

Status Connector::connectAll(Attempt& attempt, std::span<const ConnectHandle> handles) {
  for (std::size_t c = 0; c < attempt.endpoints.size(); ++c) TRY(attempt.endpoints[c]->connect(handles[c]));
  return {};
}

/// Every endpoint is asked: each may have something to do.
Result<bool> Connector::allReady(Attempt& attempt) {
  bool all = true;
  for (auto& endpoint : attempt.endpoints) {
    ASSIGN(const bool ready, endpoint->ready());
    all = all && ready;
  }
  return all;
}

Status Connector::writeProbes(Attempt& attempt) {
  for (auto& endpoint : attempt.endpoints) TRY(endpoint->probeWrite());
  return {};
}

/// Whether joining has come to its end, good or bad: the peer has then been told. A peer that gave up says so with the
/// word that it would otherwise say after its own probe.
Result<bool> Connector::join(Attempt& attempt) const {
  bool ended = !attempt.good;
  if (!ended) {
    const Result<bool> ready = allReady(attempt);
    noteError(attempt, ready.status());
    ended = !ready.ok() || ready.value();
  }
  const int word = tagOf(Phase::Written, attempt.request, opposite(attempt.request.direction));
  if (!attempt.peerWritten && context_.control.arrived(attempt.request.peer, word)) {
    ASSIGN(attempt.peerWritten, recvWord(attempt, Phase::Written));
    if (!*attempt.peerWritten) attempt.good = false, ended = true;
  }
  if (!ended) return false;
  if (attempt.good) noteError(attempt, writeProbes(attempt));
  TRY(sendVerdict(attempt, Phase::Written));
  return true;
}

Status Connector::check(Attempt& attempt) {
  for (auto& endpoint : attempt.endpoints) {
    ASSIGN(const bool arrived, endpoint->probeCheck());
    if (!arrived) attempt.good = false;
  }
  return {};
}

Status Connector::sendVerdict(Attempt& attempt, Phase phase) const {
  const std::uint64_t good = attempt.good ? 1 : 0;
  TRY(context_.control.send(attempt.request.peer, tagOf(phase, attempt.request, attempt.request.direction),
                            std::as_bytes(std::span(&good, 1))));
  enter(attempt, phase);
  return {};
}

Result<bool> Connector::recvWord(const Attempt& attempt, Phase phase) const {
  std::uint64_t good = 0;
  const int tag = tagOf(phase, attempt.request, opposite(attempt.request.direction));
  TRY(context_.control.recv(attempt.request.peer, tag, std::as_writable_bytes(std::span(&good, 1))));
  return good != 0;
}

Status Connector::recvVerdict(Attempt& attempt) const {
  ASSIGN(const bool good, recvWord(attempt, attempt.phase));
  if (!good) attempt.good = false;
  return {};
}

Status Connector::begin(Attempt& attempt) const {
  TRY(chooseTransport(attempt));
  noteError(attempt, open(attempt));
  TRY(sendHandles(attempt));
  enter(attempt, Phase::Handles);
  return {};
}

Status Connector::advance(Attempt& attempt) const {
  switch (attempt.phase) {
    case Phase::Handles:
      TRY(recvHandles(attempt));
      enter(attempt, Phase::Joining);
      return join(attempt).status();
    case Phase::Joining:
      return {};
    case Phase::Written:
      if (attempt.peerWritten) {
        if (!*attempt.peerWritten) attempt.good = false;
      } else {
        TRY(recvVerdict(attempt));
      }
      if (attempt.good) noteError(attempt, check(attempt));
      return sendVerdict(attempt, Phase::Verdict);
    case Phase::Verdict:
      // Only after both sides have checked, and cleared what they checked, may a kernel write.
      TRY(recvVerdict(attempt));
      return conclude(attempt);
    case Phase::Connected:
      return {};
  }
  return {};
}

Status Connector::conclude(Attempt& attempt) const {
  if (attempt.good) {
    report(attempt);
    attempt.phase = Phase::Connected;
    return {};
  }
  explainRetry(attempt);
  attempt = nextTry(std::move(attempt));
  return begin(attempt);
}

Result<bool> Connector::advanceOne(Attempt& attempt) const {
  if (attempt.phase == Phase::Joining) return join(attempt);
  const int tag = tagOf(attempt.phase, attempt.request, opposite(attempt.request.direction));
  const bool known = attempt.phase == Phase::Written && attempt.peerWritten;
  if (!known && !context_.control.arrived(attempt.request.peer, tag)) return false;
  TRY(advance(attempt));
  return true;
}

Result<bool> Connector::advanceArrived(std::span<Attempt> attempts) const {
  bool any = false;
  for (Attempt& attempt : attempts) {
    if (attempt.phase == Phase::Connected) continue;
    ASSIGN(const bool advanced, advanceOne(attempt));
    if (!advanced && attempt.until.expired()) return overdue(attempt);
    any = any || advanced;
  }
  return any;
}

Status Connector::overdue(const Attempt& attempt) const {
  const PeerInfo& late = peer(attempt);
  return fail(ncclRemoteError, "Rank {} waited {} ms in vain for rank {} (host {}, device {}) to connect: that rank hangs, "
              "is stopped, or never made this call; TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time allowed", self().rank,
              context_.control.timeout().count(), late.rank, late.hostName.data(), late.cudaDevice);
}

void Connector::report(const Attempt& attempt) const {
  const bool sends = attempt.request.direction == Direction::Send;
  const PeerInfo& from = sends ? self() : peer(attempt);
  const PeerInfo& to = sends ? peer(attempt) : self();
  auto endpoint = attempt.endpoints.begin();
  for (const int channel : channelsIn(attempt.request.channels)) {
    const Endpoint& end = **endpoint++;
    // Where each end has a device of its own, each says so; else the sender speaks for both.
    if (!end.eachEndReports() && !sends) continue;
    const char* side = end.eachEndReports() ? (sends ? " [send]" : " [receive]") : "";
    info(kInit | (end.eachEndReports() ? kNet : kP2p), "Channel {:02}/{} : {}[{}] -> {}[{}]{} via {}", channel,
         static_cast<int>(attempt.request.kind), from.rank, from.nvmlDevice, to.rank, to.nvmlDevice, side,
         end.description());
  }
}

void Connector::explainRetry(const Attempt& attempt) const {
  warn("Transport {} between rank {} (host {}, device {}) and rank {} (host {}, device {}) does not work: {}. Trying the "
       "next one", transportOf(attempt).name(), self().rank, self().hostName.data(), self().cudaDevice,
       peer(attempt).rank, peer(attempt).hostName.data(), peer(attempt).cudaDevice,
       attempt.error.ok() ? "its self-test, a pattern written by one side and read by the other, did not pass, or the "
                            "other side could not open it" : "see the error above");
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

}  // namespace

Result<std::vector<OpenLink>> connectLinks(const ConnectContext& context, std::span<const LinkRequest> requests) {
  const Connector connector(context);
  std::vector<Attempt> attempts(requests.size());
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    attempts[i].request = requests[i];
    TRY(connector.begin(attempts[i]));
  }

  Idle idle;
  const auto connected = [](const Attempt& attempt) { return attempt.phase == Phase::Connected; };
  while (!std::all_of(attempts.begin(), attempts.end(), connected)) {
    ASSIGN(const bool any, connector.advanceArrived(attempts));
    idle.after(any);
  }

  std::vector<OpenLink> links;
  for (Attempt& attempt : attempts) links.push_back(OpenLink{attempt.request, std::move(attempt.endpoints)});
  return links;
}

}  // namespace tutti
