// How an end of a connection over a network lays out its host memory.
#pragma once

#include <array>
#include <cstddef>

#include "device/conn_view.h"
#include "device/direction.h"

namespace tutti::net {

/// Offsets in an end's host memory.
struct EndLayout {
  static constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);

  std::size_t tail = 0;
  std::size_t head = 0;
  std::size_t words = 0;      ///< a sender's SendWords, a receiver's RecvWords
  std::size_t addresses = 0;  ///< a sender's, of what is sent from where it lies (SendPull)
  std::size_t probe = 0;      ///< kProbeBytes for each network connection
  std::size_t messages = 0;
  std::array<std::size_t, device::kProtocols> slots{};
  std::size_t bytes = 0;
};

inline constexpr std::size_t kProbeBytes = 64;

/// `slotsElsewhere`: those of the Simple protocol are not here.
EndLayout endLayout(const device::SlotBytes& slotBytes, device::Direction direction, bool slotsElsewhere);

}  // namespace tutti::net
