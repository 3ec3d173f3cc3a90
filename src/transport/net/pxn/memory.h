// The memory that a sender's kernels and the rank that sends in its stead share: one segment, made by the relay.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/conn_view.h"
#include "transport/common/transport.h"
#include "transport/net/lane/path.h"

namespace tutti::net::pxn {

/// What the two hosts tell each other while the connection is used. Of each line one side writes; words() of it are
/// used through std::atomic_ref by both.
struct PxnStatusPage {
  // The sender's.
  alignas(128) std::uint64_t pulse;  ///< grows with every turn of the sender's engine
  std::uint32_t peerLeft;            ///< the receiver has said goodbye
  std::uint32_t part;                ///< the connection is to end in peace (net::NetSender::part)
  // The relay's, of its engine but for `awake`, which its service sets and its engine takes back.
  alignas(128) std::uint32_t awake;                                    ///< 0: a Wake is needed
  std::uint32_t wakes;                                                 ///< that came
  std::uint32_t failed;                                                ///< an ncclResult_t; `text` is complete then
  std::uint32_t parted;                                                ///< what `part` asks for is done
  alignas(128) std::array<std::uint64_t, device::kProtocols> settled;  ///< steps that have left the relay for good
  std::uint64_t bytes;
  std::uint64_t stalls;
  // For who wants to know why nothing comes through.
  alignas(128) std::uint64_t turns;  ///< that its engine has given the connection
  std::uint64_t wait;                ///< a net::LaneFacts (packed()) but for …
  std::uint64_t step;
  alignas(128) std::array<char, 1024> text;  ///< ends in a zero
};

/// Offsets in the segment; the PxnStatusPage comes first.
struct Layout {
  std::size_t tail = 0;
  std::size_t head = 0;
  std::size_t words = 0;     ///< device::SendWords
  std::size_t probes = 0;    ///< one for each network connection
  std::size_t messages = 0;  ///< of LL and LL128 (net::senderMessageBytes)
  std::array<std::size_t, device::kProtocols> slots{};
  std::size_t bytes = 0;
};
inline constexpr std::size_t kProbeRoom = 64;

/// `slotsElsewhere`: those of the Simple protocol are not here.
Layout layoutOf(const device::SlotBytes& slotBytes, bool slotsElsewhere);

/// The segment as whoever has it at `base` addresses it. `steps`: the kernel's private counters; may be null. Slots
/// that are elsewhere are null.
device::SendConn viewOf(const Layout& layout, const device::SlotBytes& slotBytes, std::byte* base, std::byte* steps);

/// Whether the relay has sent all that kernels gave it, and the network has delivered it. `view`: of the host.
bool allSettled(const device::SendConn& view, const PxnStatusPage& status);

/// Without the step.
std::uint64_t packed(const net::LaneFacts& facts);
net::LaneFacts factsOf(std::uint64_t packed, std::uint64_t step);

template <class T>
T read(const T& word, std::memory_order order = std::memory_order_acquire) {
  return std::atomic_ref(const_cast<T&>(word)).load(order);
}
template <class T>
void write(T& word, T value, std::memory_order order = std::memory_order_release) {
  std::atomic_ref(word).store(value, order);
}

}  // namespace tutti::net::pxn
