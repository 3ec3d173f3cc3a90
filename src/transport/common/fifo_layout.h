// Where slots and counters lie in the memory that the two ends of a connection share. Both compute it from slotBytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/conn_view.h"
#include "transport/common/ranks.h"

namespace tutti::transport {

using device::SlotBytes;

using device::kCountersBytes;

inline constexpr std::size_t kCounterOffset = 0;  ///< tails at the receiver, heads at the sender
/// Private counters of either end, where it keeps them beside what it shares.
inline constexpr std::size_t kStepOffset = device::kCountersBytes;
inline constexpr std::size_t kSenderBytes = 2 * device::kCountersBytes;
/// At the receiver: where the content of each slot lies (SendPull::addresses).
inline constexpr std::size_t kPullOffset = kSenderBytes;
inline constexpr std::size_t kPullBytes = sizeof(device::SlotWords);
inline constexpr std::size_t kSlotAlignment = 512;

/// Offsets in the receiver's memory.
struct ReceiverLayout {
  std::array<std::size_t, device::kProtocols> slots{};
  std::size_t bytes = 0;
};

constexpr ReceiverLayout receiverLayout(const SlotBytes& slotBytes) {
  ReceiverLayout layout;
  std::size_t end = kPullOffset + kPullBytes;
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    if (slotBytes[p] == 0) continue;
    layout.slots[p] = (end + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
    end = layout.slots[p] + std::size_t{slotBytes[p]} * device::kSteps;
  }
  layout.bytes = end;
  return layout;
}

/// How much an end shares with the other.
constexpr std::size_t sharedBytes(device::Direction direction, const SlotBytes& slotBytes) {
  return direction == device::Direction::Send ? kSenderBytes : receiverLayout(slotBytes).bytes;
}

/// An address further on in memory of a device: the host has no objects there, and computes with numbers. Of null,
/// where the peer's memory was not opened, it gives an address that nobody may use.
inline std::byte* further(std::byte* address, std::size_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) + bytes);
}

/// The FIFOs of an end, as its device addresses the memory of both; `steps`: its private counters.
inline device::ConnFifos fifosIn(const SlotBytes& slotBytes, std::byte* receiver, std::byte* sender, std::byte* steps) {
  const ReceiverLayout layout = receiverLayout(slotBytes);
  device::ConnFifos fifos{};
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    fifos.slotBytes[p] = slotBytes[p];
    fifos.slots[p] = slotBytes[p] == 0 ? nullptr : further(receiver, layout.slots[p]);
  }
  fifos.tail = reinterpret_cast<device::Counter*>(further(receiver, kCounterOffset));
  fifos.head = reinterpret_cast<device::Counter*>(further(sender, kCounterOffset));
  fifos.step = reinterpret_cast<device::Counter*>(steps);
  return fifos;
}

}  // namespace tutti::transport
