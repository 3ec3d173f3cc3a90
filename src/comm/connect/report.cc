#include "comm/connect/report.h"

#include <fmt/format.h>

#include "base/log.h"

namespace tutti::comm {

Fallback fallbackOf(const LinkAttempt& attempt, const LinkEnds& ends) {
  using Side = Fallback::Side;
  const Side side = !attempt.tried ? Side::None : attempt.failedHere ? Side::Here : Side::Peer;
  return {side, fmt::format("rank {} (host {}, pid {})", ends.peer.rank, ends.peer.hostName.data(), ends.peer.pid),
          attempt.reasons};
}

Status noTransport(const LinkAttempt& attempt, const LinkEnds& ends) {
  const topo::PeerInfo& from = attempt.sends() ? ends.self : ends.peer;
  const topo::PeerInfo& to = attempt.sends() ? ends.peer : ends.self;
  if (attempt.tried && !attempt.failedHere) {
    return fail(ncclRemoteError,
                "Rank {} (host {}, pid {}) could not be connected with {} rank {}: {}. What failed did so on that rank "
                "or between the two: look for the first error there",
                ends.peer.rank, ends.peer.hostName.data(), ends.peer.pid,
                attempt.sends() ? "the sender," : "the receiver,", ends.self.rank, attempt.reasons);
  }
  return fail(ncclSystemError,
              "No transport found for rank {}[{:x}] -> rank {}[{:x}] (hosts {} and {}): {}. Ranks on "
              "different hosts need a network transport, ranks on one host peer access between their devices",
              from.rank, from.busId, to.rank, to.busId, from.hostName.data(), to.hostName.data(),
              attempt.reasons.empty() ? "no transport is enabled" : attempt.reasons);
}

Status lostTransport(const LinkAttempt& attempt, const LinkEnds& ends, std::string_view transportName) {
  const std::string link =
      fmt::format("Rank {} (host {}, device {}) could not be joined with rank {} (host {}, device {}) again by {}",
                  ends.self.rank, ends.self.hostName.data(), ends.self.cudaDevice, ends.peer.rank,
                  ends.peer.hostName.data(), ends.peer.cudaDevice, transportName);
  constexpr const char* kRemedy = "What was planned counts on it: destroy the communicator and make another one";
  if (!attempt.error.ok()) return fail(attempt.error.code(), "{}: {}. {}", link, attempt.errorText, kRemedy);
  if (!attempt.reasons.empty()) return fail(ncclSystemError, "{}: {}. {}", link, attempt.reasons, kRemedy);
  return fail(ncclRemoteError,
              "{}: its self-test did not pass, or the other side could not open it. Look for the first error there. {}",
              link, kRemedy);
}

Status peerOverdue(const LinkEnds& ends, milliseconds patience) {
  const topo::PeerInfo& late = ends.peer;
  return fail(ncclRemoteError,
              "Rank {} waited {} ms in vain for rank {} (host {}, device {}) to connect: that rank hangs, "
              "is stopped, or never made this call; TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time allowed",
              ends.self.rank, patience.count(), late.rank, late.hostName.data(), late.cudaDevice);
}

void reportLink(const LinkAttempt& attempt, const LinkEnds& ends) {
  const bool sends = attempt.sends();
  const topo::PeerInfo& from = sends ? ends.self : ends.peer;
  const topo::PeerInfo& to = sends ? ends.peer : ends.self;
  auto endpoint = attempt.endpoints.begin();
  for (const int channel : channelsIn(attempt.request.channels)) {
    const transport::Endpoint& end = **endpoint++;
    // Where each end has a device of its own, each says so; else the sender speaks for both.
    if (!end.eachEndReports() && !sends) continue;
    const char* side = end.eachEndReports() ? (sends ? " [send]" : " [receive]") : "";
    info(kInit | (end.eachEndReports() ? kNet : kP2p), "Channel {:02}/{} : {}[{}] -> {}[{}]{} via {}", channel,
         static_cast<int>(attempt.request.kind), from.rank, from.nvmlDevice, to.rank, to.nvmlDevice, side,
         end.description());
  }
}

void warnOfRetry(const LinkAttempt& attempt, const LinkEnds& ends, std::string_view transportName) {
  const auto& [self, peer] = ends;
  warn(
      "Transport {} between rank {} (host {}, device {}) and rank {} (host {}, device {}) does not work: {}. Trying "
      "the next one",
      transportName, self.rank, self.hostName.data(), self.cudaDevice, peer.rank, peer.hostName.data(), peer.cudaDevice,
      attempt.error.ok() ? "its self-test, a pattern written by one side and read by the other, did not pass, or the "
                           "other side could not open it"
                         : "see the error above");
}

}  // namespace tutti::comm
