#include "transport/select.h"

#include <fmt/format.h>

#include <string>

#include "base/log.h"

namespace tutti {

Result<Transport*> pickTransport(std::span<const std::unique_ptr<Transport>> transports, const PeerInfo& self,
                                 const PeerInfo& peer) {
  std::string reasons;
  for (const std::unique_ptr<Transport>& transport : transports) {
    ASSIGN(const bool reaches, transport->reachable(self, peer));
    if (reaches) return transport.get();
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", transport->name(), transport->whyNot(self, peer));
  }
  return fail(ncclSystemError, "No transport found for rank {}[{:x}] -> rank {}[{:x}] (hosts {} and {}): {}", self.rank,
              self.busId, peer.rank, peer.busId, self.hostName.data(), peer.hostName.data(),
              reasons.empty() ? "no transport is enabled" : reasons);
}

}  // namespace tutti
