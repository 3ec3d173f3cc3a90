// A network that reduces and gathers by itself (collNet) as kernels see it: who of a node talks to it, and how a head's
// kernel meets the host thread that issues the network's calls (docs/protocols.md, "CollNet").
//
// All nodes must issue the same calls in the same order on each connection, and nobody tells the host what comes: a
// graph replays without it. So the order follows from the counters alone. A set of lanes (channels that share a head's
// connection) makes its steps together: every work takes every lane of the set for the same number of steps, of no
// bytes where there is nothing left, and step s of all lanes is one call. What the lanes of a step hold lies in a row,
// in the slots as in the user's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/conn_view.h"

namespace tutti::device {

/// Ranks of a node that collNet's algorithms serve.
inline constexpr int kMaxCollNetLocals = 8;

/// What the network does in a step.
enum class CollNetFunc : std::uint8_t { AllReduce, AllGather, ReduceScatter };

/// CollNetWords::call: what is done, the type's number in nccl.h, and the operation's there (averages and scaled sums
/// are sums to a network).
struct CollNetCall {
  CollNetFunc func;
  std::uint8_t type;
  std::uint8_t op;

  TUTTI_PURE std::uint64_t word() const {
    return static_cast<std::uint64_t>(func) << 16 | static_cast<std::uint64_t>(type) << 8 | op;
  }
  TUTTI_PURE static CollNetCall of(std::uint64_t word) {
    return {static_cast<CollNetFunc>(word >> 16 & 0xff), static_cast<std::uint8_t>(word >> 8 & 0xff),
            static_cast<std::uint8_t>(word & 0xff)};
  }
};

/// What a head's kernel says of a step of all lanes; lane 0 of the set writes it before its tail. In the head's host
/// memory. A window is a range of the vector (AllReduce: the head's share of the step, `begin` says nothing), or of the
/// concatenation of the nodes' blocks on the head's rail, `perNode` bytes each, in the order of nodes.
struct CollNetWords {
  AskWords call;
  AskWords begin;    ///< of the window, in bytes
  AskWords bytes;    ///< of the window: of all lanes together; 0: there is nothing to call
  AskWords perNode;  ///< AllGather, ReduceScatter
  /// Where in the head's memory that begins which it sends of the window, or which it receives; 0: in the slots. Each
  /// node's own affair: the call is the same.
  AskWords sendFrom;
  AskWords recvTo;
};

/// The same as values.
struct CollNetStep {
  std::uint64_t call;
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint64_t perNode;
  std::uint64_t sendFrom;
  std::uint64_t recvTo;
};

/// A lane of a head. Step s has the slots sendSlots and recvSlots + (s % kSteps) * areaBytes; the lane's share lies
/// lane * chunkBytes of the work further on. AllGather: of `send` only what of the window is this node's own is filled,
/// at the place that it has in the window; ReduceScatter: of `recv` likewise.
struct alignas(16) CollNetConn {
  std::byte* sendSlots;
  std::byte* recvSlots;
  std::uint64_t areaBytes;  ///< of a step of all lanes: lanes * slotBytes
  std::uint32_t slotBytes;  ///< most bytes of a lane's share
  std::uint16_t lane;
  std::uint16_t lanes;  ///< of the set
  CollNetWords* words;  ///< of the set
  Counter* sendTail;    ///< steps filled; the lane's kernel writes it
  Counter* sendHead;    ///< steps whose send slot is free again; the host writes it
  Counter* recvTail;    ///< steps that have come; the host writes it
  Counter* recvHead;    ///< steps whose receive slot is free again; the lane's kernel writes it
  Counter* sendStep;    ///< where the next kernel resumes, in device memory; its own kernels write it
  Counter* recvStep;    ///< likewise
  std::uint64_t reserved;
};
static_assert(sizeof(CollNetWords) == 6 * sizeof(AskWords) && sizeof(CollNetConn) == 96);

/// A rank's place in a channel's chain, which goes from the head through all ranks of its node.
struct CollNetChainPlace {
  std::int32_t up;    ///< the neighbour nearer to the network; -1: this is the head
  std::int32_t down;  ///< -1: this is the end
  /// Of the channel, when channels are ordered by head and then by number: which share of a turn it has.
  std::int32_t position;
  std::int32_t reserved;
};

/// What a communicator's kernels know of its collNet; the same on all channels but for the arrays. In device memory.
/// Every collective takes channels 0..nChannels-1.
struct alignas(16) CollNetView {
  std::int32_t nChannels;
  std::int32_t nNodes;
  std::int32_t node;    ///< this rank's
  std::int32_t nHeads;  ///< of every node: as many as there are rails
  std::int32_t head;    ///< which of its node's heads this rank is; -1: none
  std::int32_t nLocals;
  std::int32_t local;  ///< this rank's index in `locals`
  std::int32_t reserved;
  std::int32_t heads[kMaxCollNetLocals];   ///< ranks of this node
  std::int32_t locals[kMaxCollNetLocals];  ///< all ranks of this node, ascending
  const std::int32_t* railRanks;           ///< rank of head h of node n: [n * nHeads + h]
  const CollNetConn* direct;               ///< by channel; null: no head, or CollNetDirect is not possible
  const CollNetConn* chain;                ///< by channel; `words` null where this rank is not the channel's head
  const CollNetChainPlace* chainPlaces;    ///< by channel; null: CollNetChain is not possible
};
static_assert(sizeof(CollNetView) == 128);

}  // namespace tutti::device
