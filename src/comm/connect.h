// Opening connections to peers: handles, proof and verdict exchanged over the control channel, transport by transport.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/control_channel.h"
#include "base/status.h"
#include "device/policy.h"
#include "topo/peer_info.h"
#include "transport/transport.h"

namespace tutti {

enum class Direction : std::uint8_t { Send, Recv };

/// A wish for connections of one kind to one peer in one direction, on channels 0..channels-1.
struct LinkRequest {
  int peer = -1;
  Direction direction = Direction::Send;
  device::ConnKind kind = device::ConnKind::Graph;
  int channels = 1;
  friend bool operator==(const LinkRequest&, const LinkRequest&) = default;
};

/// A wish fulfilled: one proven endpoint per channel.
struct OpenLink {
  LinkRequest request;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
};

/// Everything connectLinks needs to know; borrowed for the call.
struct ConnectContext {
  ControlChannel& control;
  std::span<const PeerInfo> peers;                           ///< of all ranks, ours included
  std::span<const std::unique_ptr<Transport>> transports;    ///< best first, the same list on all ranks
  std::array<device::SlotBytes, device::kConnKinds> slotBytes{};
  /// Peers may come as late as they like, as they may to any operation: nothing is bounded in time but by their death.
  bool peersMayBeLate = false;
};

/// Opens all links at once. Every peer named must call it with the mirrored requests (the other direction, as many
/// channels) before its next call; other ranks need not take part. A link whose self-test fails is tried again with
/// the next transport; ncclSystemError naming both ranks where none works.
///
/// Why it cannot deadlock: it runs in phases, in each of which a rank first sends to all its peers, which never waits,
/// and then receives. A rank can only wait for a peer that has not begun, never for one that waits for it.
Result<std::vector<OpenLink>> connectLinks(const ConnectContext& context, std::span<const LinkRequest> requests);

}  // namespace tutti
