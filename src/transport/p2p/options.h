// What the user allows of P2P, as plain values.
#pragma once

#include "base/clock.h"

namespace tutti::p2p {

/// What the user allows.
struct P2pOptions {
  /// NCCL_P2P_DISABLE=1 and NCCL_P2P_LEVEL=LOC both mean: only ranks of one device.
  bool disabled = false;
  /// NCCL_P2P_DIRECT_DISABLE=1: receivers do not read the sender's buffers in place.
  bool directDisabled = false;
  /// NCCL_CUMEM_ENABLE=1: other processes map memory by file descriptors of it, where the devices can do that, and not
  /// by CUDA's IPC handles.
  bool descriptors = false;
  milliseconds patience{30'000};  ///< with a peer that does not hand out its memory
  friend bool operator==(const P2pOptions&, const P2pOptions&) = default;
};

}  // namespace tutti::p2p
