// Where things lie in the one allocation that each end of a P2P connection owns. Both ends compute it from slotBytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda.h>

#include "device/policy.h"
#include "gpu/ipc.h"
#include "transport/transport.h"

namespace tutti::p2p {

using device::SlotBytes;

/// One group of counters, one per protocol.
inline constexpr std::size_t kCountersBytes = device::kProtocols * device::kCounterStride * sizeof(std::uint64_t);
inline constexpr std::size_t kCounterOffset = 0;      ///< tails at the receiver, heads at the sender
inline constexpr std::size_t kStepOffset = kCountersBytes;
inline constexpr std::size_t kSenderBytes = 2 * kCountersBytes;
/// At the receiver: where the content of each slot lies (ConnView::pullFrom); no counter shares its cache lines.
inline constexpr std::size_t kPullOffset = kSenderBytes;
inline constexpr std::size_t kPullBytes =
    (device::kSteps + device::kCounterStride - 1) / device::kCounterStride * device::kCounterStride * sizeof(std::uint64_t);
inline constexpr std::size_t kSlotAlignment = 512;

/// Offsets in the receiver's allocation.
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

enum class Side : std::uint32_t { Sender = 1, Receiver = 2 };

/// The contents of a ConnectHandle.
struct WireHandle {
  std::uint32_t magic = 0;
  Side side = Side::Sender;
  std::uint64_t address = 0;    ///< in the owner's process; used only within it
  std::uint64_t bytes = 0;
  std::int32_t rank = -1;       ///< the owner
  std::int32_t peerRank = -1;   ///< whom the owner expects at the other end
  std::int32_t channel = -1;
  SlotBytes slotBytes{};
  CUipcMemHandle ipc{};         ///< zero within one process
  std::uint32_t pulls = 0;      ///< 1: the receiver may read the sender's memory, if the sender has a window
  MemoryWindow window{};        ///< the sender's; empty at receivers
};
inline constexpr std::uint32_t kWireMagic = 0x70327032;
static_assert(sizeof(WireHandle) <= sizeof(ConnectHandle) && std::is_trivially_copyable_v<WireHandle>);

}  // namespace tutti::p2p
