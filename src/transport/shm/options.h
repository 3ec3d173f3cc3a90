// What the user allows of SHM, as plain values.
#pragma once

#include "base/clock.h"

namespace tutti::shm {

/// What the user allows.
struct ShmOptions {
  bool disabled = false;  ///< NCCL_SHM_DISABLE=1
  /// NCCL_P2P_DIRECT_DISABLE=1: receivers do not read the sender's buffers in place.
  bool directDisabled = false;
  milliseconds patience{30'000};  ///< with a peer that does not hand out its memory
  friend bool operator==(const ShmOptions&, const ShmOptions&) = default;
};

}  // namespace tutti::shm
