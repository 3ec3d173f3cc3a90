// What the user allows of P2P, as plain values.
#pragma once

namespace tutti::p2p {

/// What the user allows.
struct P2pOptions {
  /// NCCL_P2P_DISABLE=1 and NCCL_P2P_LEVEL=LOC both mean: only ranks of one device.
  bool disabled = false;
  /// NCCL_P2P_DIRECT_DISABLE=1: receivers do not read the sender's buffers in place.
  bool directDisabled = false;
  friend bool operator==(const P2pOptions&, const P2pOptions&) = default;
};

}  // namespace tutti::p2p
