// How much a thread must have to do, as plain values.
#pragma once

#include <array>
#include <cstdint>

#include "device/conn_view.h"

namespace tutti::comm {

/// Bytes that a thread, or a further channel, of a collective must have to do, by protocol; below 0: what suits the
/// world.
struct ThreadThresholds {
  std::array<std::int64_t, device::kProtocols> tree{-1, -1, -1};
  std::array<std::int64_t, device::kProtocols> ring{-1, -1, -1};
  friend bool operator==(const ThreadThresholds&, const ThreadThresholds&) = default;
};

}  // namespace tutti::comm
