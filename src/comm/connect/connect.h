// Opening connections to peers: handles, proof and verdict exchanged over the control channel, transport by transport.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/ranks/control_channel.h"
#include "base/status.h"
#include "comm/connect/link_types.h"
#include "device/conn_view.h"
#include "topo/machine/peer_info.h"
#include "transport/common/transport.h"

namespace tutti::comm {

/// A wish fulfilled: one proven endpoint per channel, ascending. Relatives may use the endpoints as well.
struct OpenLink {
  LinkRequest request;
  std::vector<std::shared_ptr<transport::Endpoint>> endpoints;
  Fallback fallback{};
  std::size_t transport = 0;  ///< its number in the list
};

class AwaitedPeers;

/// Everything connectLinks needs to know; borrowed for the call.
struct ConnectContext {
  ControlChannel& control;
  std::span<const topo::PeerInfo> peers;                              ///< of all ranks, ours included
  std::span<const std::unique_ptr<transport::Transport>> transports;  ///< best first, the same list on all ranks
  std::array<device::SlotBytes, device::kConnKinds> slotBytes{};
  /// Those of Mesh connections that host threads drive, of which there may be many.
  device::SlotBytes proxiedMeshSlots{};
  /// Peers may come as late as they like, as they may to any operation: nothing is bounded in time but by their death.
  bool peersMayBeLate = false;
  AwaitedPeers* awaited = nullptr;  ///< is told whom the call waits for; null: nobody wants to know
};

/// Opens all links at once. Every peer named must ask for the mirrored link (the other direction, the same channels),
/// in this call or in a later one, in whatever company; other ranks need not take part. A link whose self-test fails is
/// tried again with the next transport; ncclSystemError naming both ranks where none works, ncclRemoteError where what
/// was tried failed on the other side alone.
///
/// Why it cannot deadlock: every link advances by itself. Its first message is sent before anything is waited for,
/// each further one as soon as the peer's last one has come, whatever the other links of the call wait for; sending
/// never waits. So a link is complete once both its ends have been asked for, and a call waits only for calls that its
/// peers have yet to make: ranks wait for each other in a circle only where the program's own order makes them.
Result<std::vector<OpenLink>> connectLinks(const ConnectContext& context, std::span<const LinkRequest> requests);

/// The same for links that were open once and have been closed at both ends, each by the transport that it had: what
/// was planned, and what graphs hold, counts on that. One of a kind, peer and direction at a time. An error names the
/// link, both ranks and the cause where the transport does not join them any more.
Result<std::vector<OpenLink>> reconnectLinks(const ConnectContext& context, std::span<const KnownLink> links);

}  // namespace tutti::comm
