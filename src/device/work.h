// What the host tells a kernel: plain structs, identical in both worlds, sizes and offsets asserted.
#pragma once

#include <cstddef>
#include <cstdint>

// For functions that are the same on the host and in kernels.
#if defined(__CUDACC__)
#define TUTTI_PURE __host__ __device__ constexpr
#else
#define TUTTI_PURE constexpr
#endif

namespace tutti::device {

inline constexpr int kSteps = 8;          ///< slots of a connection's FIFO (NCCL_STEPS)
inline constexpr int kMaxChannels = 64;
inline constexpr int kProtocols = 3;      ///< LL, LL128, Simple, in this order

enum class Func : std::uint8_t { Broadcast, Reduce, AllGather, ReduceScatter, AllReduce, SendRecv };
/// The first seven in the order of NCCL's cost tables; the last two are tutti's own.
enum class Algorithm : std::uint8_t { Tree, Ring, CollNetDirect, CollNetChain, Nvls, NvlsTree, Pat, OneShot, Direct };
inline constexpr int kAlgorithms = 9;
enum class Protocol : std::uint8_t { LL, LL128, Simple };
/// What two ranks do for an AllReduce by Algorithm::Ring: they go round the ring, exchange their inputs (device/ring.h), or
/// go round it over their connections for messages, in place (device/pair_in_place.h).
enum class PairWay : std::uint8_t { Ring, Exchange, InPlace };

/// Reduction as the kernel runs it. Avg on floating types and PreMulSum are PreMulSum; Avg on integers is SumPostDiv.
enum class DevOp : std::uint8_t { Sum, Prod, Max, Min, PreMulSum, SumPostDiv };

/// What a connection is for. Two ranks may have one of each: Graph connections follow the ring, the trees and PAT and
/// have slots for every protocol; Mesh connections join any pair, for messages and direct algorithms, without LL128.
enum class ConnKind : std::uint8_t { Graph, Mesh };
inline constexpr int kConnKinds = 2;

/// Counters of one connection lie this many words apart: who polls one does not suffer from the writer of another.
inline constexpr std::size_t kCounterStride = 16;

/// One side of a connection (one direction, one channel, one peer, one kind) as a kernel sees it. Each protocol has a
/// FIFO of its own: slots and counters. The receiver owns the slots; a P2P sender writes straight into them. `tail` counts
/// slots produced, `head` slots consumed, both only ever grow. Index the counters through tailOf() and its like.
///
/// Where a receiver can read the sender's memory, the Simple protocol may pull (docs/protocols.md): instead of filling a
/// slot the sender says where the slot's content lies, and keeps it until the receiver has consumed the slot.
///
/// Over a network, connections for messages may share the slots of the Simple protocol: all of one channel in one direction
/// have `sharedSlots` of them together, which are taken one after the other, whichever connection they are for
/// (docs/network.md). Each end says in placesOf() which one a step has.
struct alignas(16) ConnView {
  std::byte* slots[kProtocols];     ///< sender: the peer's slots as mapped here; receiver: our own; null: not offered
  std::uint64_t* tail;              ///< written by the sender, polled by the receiver; lives with the receiver
  std::uint64_t* head;              ///< written by the receiver, polled by the sender; lives with the sender
  std::uint64_t* step;              ///< this side's private counters: where the next kernel resumes; our device memory
  std::uint32_t slotBytes[kProtocols];
  std::uint32_t pullLeast;          ///< less than this goes through a slot
  std::uint64_t* pullFrom;          ///< a word per slot, written by the sender before the tail, at the receiver: the
                                    ///< sender's address of the slot's content; 0: in the slot. Null: never pulls
  std::uint64_t pullBase;           ///< sender: the receiver, or the network, reads its memory from this address on …
  std::uint64_t pullBytes;          ///< … for so many bytes. Receiver over a network: messages may come right into it
  std::int64_t pullShift;           ///< receiver: to be added to the sender's addresses
  std::uint64_t* sizes;             ///< sender over a network: a word per slot, sizeWord() of its step, written before
                                    ///< the tail (Simple) or beside the lines. Null: the peer's kernel reads the slots.
                                    ///< Receiver over a network: what it reads of each slot of the Simple protocol
  std::uint64_t* shared;            ///< how many shared slots were taken so far, this side's private counter; our device
                                    ///< memory. Null: the slots are the connection's own
  std::uint64_t* sharedHead;        ///< sender: how many of them have been given back, written by the host
  std::uint32_t sharedSlots;        ///< a power of two, at most kMostSharedSlots
  std::uint32_t reserved;

  TUTTI_PURE std::uint64_t* tailOf(Protocol p) const { return tail + static_cast<std::size_t>(p) * kCounterStride; }
  TUTTI_PURE std::uint64_t* headOf(Protocol p) const { return head + static_cast<std::size_t>(p) * kCounterStride; }
  TUTTI_PURE std::uint64_t* stepOf(Protocol p) const { return step + static_cast<std::size_t>(p) * kCounterStride; }
  /// The word of slot i is sizesOf(p)[i]. Every protocol counts steps of its own.
  TUTTI_PURE std::uint64_t* sizesOf(Protocol p) const { return sizes + static_cast<std::size_t>(p) * kCounterStride; }
  /// A receiver's word of a step. It outlives the slot by kSteps steps: who looks at it may lag behind the kernel.
  TUTTI_PURE std::uint64_t* expectedOf(std::uint64_t number) const {
    return sizesOf(Protocol::Simple) + number % kCounterStride;
  }
  /// Which of the shared slots a step has, as a number that goes on growing, modulo 2^32. A sender writes it before the
  /// tail, a receiver before it says what it expects. A receiver's upper half says of which message it is
  /// (device/message_turn.h).
  TUTTI_PURE std::uint64_t* placesOf(std::uint64_t number) const {
    return sizesOf(Protocol::Simple) + kCounterStride + number % kCounterStride;
  }
  /// A receiver's word with shared slots, where `pullBytes` is not 0: the address of its own memory where the content of the
  /// step belongs, or 0, in the slot. Written before it says what it expects. A receiver needs no words for LL's sizes.
  TUTTI_PURE std::uint64_t* intoOf(std::uint64_t number) const {
    return sizesOf(Protocol::LL) + number % kCounterStride;
  }
  /// A receiver's private counter of the steps that it has asked for, with shared slots.
  TUTTI_PURE std::uint64_t* askedOf() const { return stepOf(Protocol::Simple) + 1; }
};
static_assert(sizeof(ConnView) == 128 && 2 * kSteps <= kCounterStride);

/// Words behind ConnView::sizes.
inline constexpr std::size_t kSizesWords = (kProtocols + 1) * kCounterStride;
/// Words of as many steps are there for a receiver that asks ahead.
inline constexpr std::uint32_t kMostSharedSlots = kCounterStride;

/// What an end says of the slot of `step` (ConnView::sizes): never equal to what it said of an earlier one.
TUTTI_PURE std::uint64_t sizeWord(std::uint64_t step, std::uint32_t bytes) { return (step + 1) << 32 | bytes; }
TUTTI_PURE bool isSizeOf(std::uint64_t word, std::uint64_t step) {
  return static_cast<std::uint32_t>(word >> 32) == static_cast<std::uint32_t>(step + 1);
}

/// A rank's place in one tree: ranks, -1 for none.
inline constexpr int kMaxTreeChildren = 3;
struct TreeView {
  std::int32_t up;
  std::int32_t down[kMaxTreeChildren];  ///< the present ones first
};
static_assert(sizeof(TreeView) == 16);

/// One channel of a communicator. Connection arrays are indexed by peer rank.
struct alignas(16) ChannelView {
  ConnView* send[kConnKinds];
  ConnView* recv[kConnKinds];
  const std::int32_t* ringRanks;    ///< ring order starting at this rank: ringRanks[0] == rank
  std::int32_t ringPrev;
  std::int32_t ringNext;
  TreeView tree;                    ///< in the first or the second of a pair of trees, as the channel has it

  TUTTI_PURE const ConnView& sendTo(ConnKind kind, int peer) const { return send[static_cast<int>(kind)][peer]; }
  TUTTI_PURE const ConnView& recvFrom(ConnKind kind, int peer) const { return recv[static_cast<int>(kind)][peer]; }
};
static_assert(sizeof(ChannelView) == 64);

/// What all kernels of a communicator share; in device memory, constant after init (arrays may gain connections).
struct alignas(16) CommView {
  ChannelView* channels;
  const std::uint32_t* abortWord;   ///< non-zero: leave every wait (pinned host memory)
  std::int32_t rank;
  std::int32_t nRanks;
  std::uint32_t nChannels;
  std::uint32_t reserved;
};
static_assert(sizeof(CommView) == 32);

/// One collective. Channel c of channelLo..channelHi moves elements [count*i/n, count*(i+1)/n) rounded to grains; the
/// partition is computed by the same constexpr function on host and device (device/partition.h).
struct alignas(16) CollWork {
  const void* send;
  void* recv;
  std::uint64_t count;              ///< elements (copies: bytes), of the vector or per rank (AG, RS)
  std::uint64_t scalar;             ///< PreMulSum: bits of the factor, or its address if scalarIsPointer; SumPostDiv: N
  std::uint32_t chunkBytes;         ///< bytes of one chunk, a multiple of 512 and at most slotBytes * stepsPerChunk
  std::int32_t root;
  std::uint8_t channelLo;
  std::uint8_t channelHi;
  std::uint8_t stepsPerChunk;       ///< slots one chunk occupies
  std::uint8_t scalarIsPointer;
  DevOp op;                         ///< for kernels that choose it at run time
  PairWay pairWay;                  ///< where the kernel can (device/kernels.h); those of GPUs always go round the ring
  std::uint8_t reserved[2];
};
static_assert(sizeof(CollWork) == 48);

/// One round of point-to-point: a send and a receive that run at the same time, either may be absent (peer -1). A
/// message is spread over the channels in parts; the part of channel c covers the same range of bytes on both sides.
/// sendPeer == recvPeer == rank is a copy to oneself.
struct alignas(16) P2pWork {
  const void* send;
  void* recv;
  std::uint64_t sendBytes;
  std::uint64_t recvBytes;
  std::int32_t sendPeer;
  std::int32_t recvPeer;
  std::uint8_t channelLo;
  std::uint8_t channelHi;
  Protocol sendProtocol;
  Protocol recvProtocol;
  std::uint32_t recvTurn;           ///< which of the messages from recvPeer it is (device/message_turn.h)
};
static_assert(sizeof(P2pWork) == 48);

/// The one parameter of every kernel. Works run in order; block b is channel firstChannel + b and skips works that do
/// not include it.
inline constexpr int kMaxWorksPerLaunch = 80;
struct alignas(16) KernelArgs {
  const CommView* comm;
  std::uint32_t nWorks;
  std::uint32_t firstChannel;
  union {
    CollWork coll[kMaxWorksPerLaunch];
    P2pWork p2p[kMaxWorksPerLaunch];
  };
};
static_assert(sizeof(KernelArgs) <= 4096, "fits the smallest kernel parameter space");

}  // namespace tutti::device
