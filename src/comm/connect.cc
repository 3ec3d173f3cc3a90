#include "comm/connect.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/log.h"

namespace tutti {

namespace {

/// Messages of one link carry the phase, the kind and which of the two sides sent them in their tag, so that the links
/// between one pair of ranks do not mix. Order within a tag is the order of the calls, hence equal on both sides.
enum class Phase : int { Handles, Written, Verdict };

constexpr int kConnectTag = 0x1000;

int tagOf(Phase phase, const LinkRequest& link, Direction senderSide) {
  const int place = static_cast<int>(phase) * device::kConnKinds + static_cast<int>(link.kind);
  return kConnectTag + place * 2 + (senderSide == Direction::Send ? 0 : 1);
}

Direction opposite(Direction d) { return d == Direction::Send ? Direction::Recv : Direction::Send; }

/// One link on its way: which transport it tries, how far it got. `good` turns false on either side's failure.
struct Attempt {
  LinkRequest request;
  std::size_t transport = 0;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  bool good = true;
  Status error;          ///< ours, where it was ours
  std::string reasons;   ///< why earlier transports are out
};

class Connector {
 public:
  explicit Connector(const ConnectContext& context) : context_(context) {}

  /// Moves the attempt to the first transport from its current one on that reaches the peer.
  Status chooseTransport(Attempt& attempt) const;
  /// Runs all phases for all attempts; on return `good` says which are connected. An error means that the exchange
  /// itself broke down.
  Status runRound(std::span<Attempt> attempts) const;
  void report(const Attempt& attempt) const;
  void explainRetry(const Attempt& attempt) const;
  /// The same wish, to be tried with the next transport.
  Attempt nextTry(Attempt failed) const;

 private:
  const PeerInfo& self() const { return context_.peers[static_cast<std::size_t>(context_.control.rank())]; }
  const PeerInfo& peer(const Attempt& a) const { return context_.peers[static_cast<std::size_t>(a.request.peer)]; }
  Transport& transportOf(const Attempt& a) const { return *context_.transports[a.transport]; }

  Status open(Attempt& attempt) const;
  Status recv(int peer, int tag, std::span<std::byte> message) const;
  Status sendHandles(Attempt& attempt) const;
  Status recvHandles(Attempt& attempt) const;
  Status exchangeVerdict(std::span<Attempt> attempts, Phase phase) const;
  static Status connectAndWrite(Attempt& attempt, std::span<const ConnectHandle> handles);
  static Status check(Attempt& attempt);
  static void noteError(Attempt& attempt, Status status);
  void noteReason(Attempt& attempt, std::string_view reason) const;

  const ConnectContext& context_;
};

void Connector::noteError(Attempt& attempt, Status status) {
  if (status.ok()) return;
  attempt.good = false;
  attempt.error = status;
}

void Connector::noteReason(Attempt& attempt, std::string_view reason) const {
  attempt.reasons += fmt::format("{}{}: {}", attempt.reasons.empty() ? "" : "; ", transportOf(attempt).name(), reason);
}

Attempt Connector::nextTry(Attempt failed) const {
  noteReason(failed, "it was tried and does not work, see above");
  return {failed.request, failed.transport + 1, {}, true, {}, std::move(failed.reasons)};
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
  for (int channel = 0; channel < attempt.request.channels; ++channel) {
    const LinkSpec link{self(), peer(attempt), channel, context_.slotBytes[static_cast<std::size_t>(attempt.request.kind)]};
    Transport& transport = transportOf(attempt);
    const bool sending = attempt.request.direction == Direction::Send;
    ASSIGN(auto endpoint, sending ? transport.openSend(link) : transport.openRecv(link));
    attempt.endpoints.push_back(std::move(endpoint));
  }
  return {};
}

/// In every phase: a peer may be waiting for a third rank that is late.
Status Connector::recv(int peer, int tag, std::span<std::byte> message) const {
  return context_.peersMayBeLate ? context_.control.recvLate(peer, tag, message)
                                 : context_.control.recv(peer, tag, message);
}

/// A verdict word, then one handle per channel (all zero where opening failed, so that the size is fixed).
Status Connector::sendHandles(Attempt& attempt) const {
  const std::size_t channels = static_cast<std::size_t>(attempt.request.channels);
  std::vector<std::byte> message(sizeof(std::uint64_t) + channels * sizeof(ConnectHandle));
  const std::uint64_t good = attempt.good ? 1 : 0;
  std::memcpy(message.data(), &good, sizeof(good));
  for (std::size_t c = 0; attempt.good && c < channels; ++c) {
    const ConnectHandle handle = attempt.endpoints[c]->handle();
    std::memcpy(message.data() + sizeof(good) + c * sizeof(handle), &handle, sizeof(handle));
  }
  return context_.control.send(attempt.request.peer, tagOf(Phase::Handles, attempt.request, attempt.request.direction), message);
}

Status Connector::recvHandles(Attempt& attempt) const {
  const std::size_t channels = static_cast<std::size_t>(attempt.request.channels);
  std::vector<std::byte> message(sizeof(std::uint64_t) + channels * sizeof(ConnectHandle));
  const int tag = tagOf(Phase::Handles, attempt.request, opposite(attempt.request.direction));
  TRY(recv(attempt.request.peer, tag, message));
  std::uint64_t peerGood = 0;
  std::memcpy(&peerGood, message.data(), sizeof(peerGood));
  if (peerGood == 0) attempt.good = false;
  if (!attempt.good) return {};
  std::vector<ConnectHandle> handles(channels);
  std::memcpy(handles.data(), message.data() + sizeof(peerGood), channels * sizeof(ConnectHandle));
  noteError(attempt, connectAndWrite(attempt, handles));
  return {};
}

Status Connector::connectAndWrite(Attempt& attempt, std::span<const ConnectHandle> handles) {
  for (std::size_t c = 0; c < attempt.endpoints.size(); ++c) TRY(attempt.endpoints[c]->connect(handles[c]));
  for (auto& endpoint : attempt.endpoints) TRY(endpoint->probeWrite());
  return {};
}

Status Connector::check(Attempt& attempt) {
  for (auto& endpoint : attempt.endpoints) {
    ASSIGN(const bool arrived, endpoint->probeCheck());
    if (!arrived) attempt.good = false;
  }
  return {};
}

Status Connector::exchangeVerdict(std::span<Attempt> attempts, Phase phase) const {
  for (const Attempt& attempt : attempts) {
    const std::uint64_t good = attempt.good ? 1 : 0;
    TRY(context_.control.send(attempt.request.peer, tagOf(phase, attempt.request, attempt.request.direction),
                              std::as_bytes(std::span(&good, 1))));
  }
  for (Attempt& attempt : attempts) {
    std::uint64_t good = 0;
    TRY(recv(attempt.request.peer, tagOf(phase, attempt.request, opposite(attempt.request.direction)),
             std::as_writable_bytes(std::span(&good, 1))));
    if (good == 0) attempt.good = false;
  }
  return {};
}

Status Connector::runRound(std::span<Attempt> attempts) const {
  for (Attempt& attempt : attempts) {
    noteError(attempt, open(attempt));
    TRY(sendHandles(attempt));
  }
  for (Attempt& attempt : attempts) TRY(recvHandles(attempt));
  TRY(exchangeVerdict(attempts, Phase::Written));
  for (Attempt& attempt : attempts) {
    if (attempt.good) noteError(attempt, check(attempt));
  }
  // Only after both sides have checked, and cleared what they checked, may a kernel write.
  return exchangeVerdict(attempts, Phase::Verdict);
}

void Connector::report(const Attempt& attempt) const {
  if (attempt.request.direction != Direction::Send) return;
  for (std::size_t c = 0; c < attempt.endpoints.size(); ++c) {
    info(kInit | kP2p, "Channel {:02}/{} : {}[{}] -> {}[{}] via {}", c, static_cast<int>(attempt.request.kind), self().rank, self().cudaDevice,
         peer(attempt).rank, peer(attempt).cudaDevice, attempt.endpoints[c]->description());
  }
}

void Connector::explainRetry(const Attempt& attempt) const {
  warn("Transport {} between rank {} (host {}, device {}) and rank {} (host {}, device {}) does not work: {}. Trying the "
       "next one", transportOf(attempt).name(), self().rank, self().hostName.data(), self().cudaDevice,
       peer(attempt).rank, peer(attempt).hostName.data(), peer(attempt).cudaDevice,
       attempt.error.ok() ? "its self-test, a pattern written by one side and read by the other, did not pass, or the "
                            "other side could not open it" : "see the error above");
}

}  // namespace

Result<std::vector<OpenLink>> connectLinks(const ConnectContext& context, std::span<const LinkRequest> requests) {
  const Connector connector(context);
  std::vector<OpenLink> links;
  std::vector<Attempt> pending;
  for (const LinkRequest& request : requests) pending.push_back(Attempt{request, 0, {}, true, {}, {}});

  while (!pending.empty()) {
    for (Attempt& attempt : pending) TRY(connector.chooseTransport(attempt));
    TRY(connector.runRound(pending));
    std::vector<Attempt> failed;
    for (Attempt& attempt : pending) {
      if (attempt.good) {
        connector.report(attempt);
        links.push_back(OpenLink{attempt.request, std::move(attempt.endpoints)});
        continue;
      }
      connector.explainRetry(attempt);
      failed.push_back(connector.nextTry(std::move(attempt)));
    }
    pending = std::move(failed);
  }
  return links;
}

}  // namespace tutti
