// What the two ends of a connection over verbs tell each other, and the memory in which they meet.
#pragma once

#include <array>
#include <bitset>
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

inline constexpr std::uint64_t kIbMagic = 0x7475747469696232;  // "tuttiib2": version 2 of what this file says

/// Some of a connection's queue pairs, by number. Each is a strand: from one port here to one port there, for good.
using Strands = std::bitset<kMostQueuePairs>;
static_assert(std::is_trivially_copyable_v<Strands>);

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
  std::uint32_t failover = 0;  ///< the connection shall outlive strands that fail: where both say so
  std::uint32_t recovery = 0;  ///< and take them back: where both say so
  std::array<char, 96> who{};  ///< rank, host and device, for messages; ends in a zero, perhaps cut
  std::array<PortAddress, kMostChildren> ports{};
  std::array<std::uint32_t, kMostQueuePairs> numbers{};
  /// The sender's: what its NICs could use; the receiver's: what of it both do.
  std::array<EceOptions, kMostQueuePairs> ece{};
};
static_assert(std::is_trivially_copyable_v<SideBlock>);

inline constexpr std::uint8_t kIbReady = 0x52;
/// The last byte on a control socket whose end closes in order.
inline constexpr std::uint8_t kIbBye = 0x42;

/// Which rows an end has when it has stopped. A receiver: its next row, and which places of the ring have a row that is
/// open. A sender: its next row, and for which rows from there on (bit i: row next + i) the grants have come.
struct RowsSeen {
  std::uint64_t next = 0;
  std::uint64_t bits = 0;
};

/// What ends say once their connection stands (agreement.h, docs/network.md, "A port that fails, and one that
/// returns"). Begins with a byte that is not kIbBye.
struct ControlFrame {
  enum class Kind : std::uint8_t {
    Halts = 0x48,
    Stopped = 0x53,
    Pairs = 0x50,
    Ready = 0x59,
    Try = 0x54,
    Answer = 0x41
  };
  Kind kind = Kind::Stopped;
  std::uint64_t era = 0;        ///< Try, Answer: the number of the try
  Strands strands;              ///< Stopped: have failed; Ready: stand; Try, Answer: are tried
  Strands revived;              ///< Stopped of a sender: have been tried and work
  RowsSeen rows;                ///< Stopped
  SideBlock side;               ///< Pairs, Try, Answer: numbers (0: there is none) and addresses
  std::array<char, 256> why{};  ///< Stopped, for messages; ends in a zero, perhaps cut
};
static_assert(std::is_trivially_copyable_v<ControlFrame>);

/// Receives that may be under way on one connection: rows of the ring.
inline constexpr std::uint32_t kIbRows = 64;
static_assert(kIbRows == 64, "RowsSeen has a bit for each");

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

/// Of a receiver that has stopped: whether a row that was sent to it is open. It may be any of the last kIbRows.
constexpr bool ibRowIsOpen(const RowsSeen& receiver, std::uint64_t row) {
  return row + kIbRows >= receiver.next && row < receiver.next && (receiver.bits >> row % kIbRows & 1) != 0;
}

/// Of a sender that has stopped: whether it has the grants of a row.
constexpr bool ibRowIsGranted(const RowsSeen& sender, std::uint64_t row) {
  return row < sender.next || (row < sender.next + kIbRows && (sender.bits >> (row - sender.next) & 1) != 0);
}

/// The part of a message on each of `pairs` queue pairs but the last ones: whole lines of the flagged protocols.
constexpr std::size_t ibPieceBytes(std::size_t bytes, std::size_t pairs) {
  constexpr std::size_t kLine = 128;
  return ((bytes + pairs - 1) / pairs + kLine - 1) / kLine * kLine;
}

}  // namespace tutti::net::ib
