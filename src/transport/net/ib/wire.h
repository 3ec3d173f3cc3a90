// What the two ends of a connection over verbs tell each other, and the memory in which they meet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/queue_pair.h"
#include "transport/net/tcp/wire.h"

namespace tutti::net::ib {

/// What a listener says of itself; the beginning of a NetHandle.
struct IbHandle {
  tcp::SocketHandle socket;
  std::uint32_t children = 0;    ///< NICs of the listener's device
  std::uint32_t queuePairs = 0;  ///< IbOptions::queuePairs of the listener
};
static_assert(std::is_trivially_copyable_v<IbHandle> && sizeof(IbHandle) <= sizeof(plugin::NetHandle));

inline constexpr std::uint64_t kIbMagic = 0x7475747469696231;  // "tuttiib1": version 1 of what this file says

/// One end, as the other is told over the control socket: first the sender's, then the receiver's, whose queue pairs
/// stand by then. The sender says kIbReady when its own do.
struct SideBlock {
  std::uint64_t magic = kIbMagic;
  std::uint64_t memory = 0;      ///< address: the sender's ring of grants, the receiver's table of sizes
  std::uint32_t children = 0;    ///< ports in use
  std::uint32_t queuePairs = 0;  ///< number i of one end belongs to number i of the other; it is on port i mod children
  std::int32_t serviceLevel = 0;  ///< the sender's counts on both sides
  std::int32_t trafficClass = 0;
  std::uint32_t adaptive = 0;  ///< all ports may let packets overtake each other
  std::uint32_t splits = 0;    ///< messages go over all queue pairs: the sender's counts
  std::array<PortAddress, kMostChildren> ports{};
  std::array<std::uint32_t, kMostQueuePairs> numbers{};
};
static_assert(std::is_trivially_copyable_v<SideBlock>);

inline constexpr std::uint8_t kIbReady = 0x52;
/// The last byte on a control socket whose end closes in order.
inline constexpr std::uint8_t kIbBye = 0x42;

/// Receives that may be under way on one connection: rows of the ring.
inline constexpr std::uint32_t kIbRows = 64;

/// One message that a receiver grants: where it may be written. `index` is written last, in ascending order of
/// addresses, and says that all before it is there: it is the number of the row plus one.
struct Grant {
  std::uint64_t address = 0;
  std::uint64_t capacity = 0;
  std::array<std::uint32_t, kMostChildren> keys{};  ///< by the receiver's ports
  std::uint32_t count = 0;                          ///< messages of the row
  std::int32_t tag = 0;
  std::uint64_t index = 0;
};
static_assert(sizeof(Grant) == 64);

/// Row number n of a connection is rows[n mod kIbRows]. Of the sender; written by the receiver's NIC.
struct GrantRow {
  std::array<Grant, kMostRowMessages> grants{};
};
static_assert(sizeof(GrantRow) == 512);

/// How long the messages of a row were, where it has several. Of the receiver; written by the sender's NIC.
struct SizeRow {
  std::array<std::uint32_t, kMostRowMessages> sizes{};
};

/// The part of a message on each of `pairs` queue pairs but the last ones: whole lines of the flagged protocols.
constexpr std::size_t ibPieceBytes(std::size_t bytes, std::size_t pairs) {
  constexpr std::size_t kLine = 128;
  return ((bytes + pairs - 1) / pairs + kLine - 1) / kLine * kLine;
}

}  // namespace tutti::net::ib
