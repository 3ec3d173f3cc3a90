// What the host tells a kernel: plain structs, identical in both worlds, sizes and offsets asserted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/conn_view.h"

namespace tutti::device {

inline constexpr int kMaxChannels = 64;

struct CollNetView;

enum class Func : std::uint8_t { Broadcast, Reduce, AllGather, ReduceScatter, AllReduce, SendRecv };
/// The first seven in the order of NCCL's cost tables; the last two are tutti's own.
enum class Algorithm : std::uint8_t { Tree, Ring, CollNetDirect, CollNetChain, Nvls, NvlsTree, Pat, OneShot, Direct };
inline constexpr int kAlgorithms = 9;
/// In which a network takes part that reduces by itself.
TUTTI_PURE bool isCollNet(Algorithm algorithm) {
  return algorithm == Algorithm::CollNetDirect || algorithm == Algorithm::CollNetChain;
}
/// What two ranks do for an AllReduce by Algorithm::Ring: they go round the ring, exchange their inputs
/// (device/collectives/ring.h), or go round it over their connections for messages, in place
/// (device/collectives/pair_in_place.h).
enum class PairMethod : std::uint8_t { Ring, Exchange, InPlace };

/// Reduction as the kernel runs it. Avg on floating types and PreMulSum are PreMulSum; Avg on integers is SumPostDiv.
enum class DevOp : std::uint8_t { Sum, Prod, Max, Min, PreMulSum, SumPostDiv };

/// A rank's place in one tree: ranks, -1 for none.
inline constexpr int kMaxTreeChildren = 3;
struct TreeView {
  std::int32_t up;
  std::int32_t down[kMaxTreeChildren];  ///< the present ones first
};
static_assert(sizeof(TreeView) == 16);

/// One channel of a communicator. Connection arrays are indexed by peer rank.
struct alignas(16) ChannelView {
  SendConn* send[kConnKinds];
  RecvConn* recv[kConnKinds];
  const std::int32_t* ringRanks;  ///< ring order starting at this rank: ringRanks[0] == rank
  std::int32_t ringPrev;
  std::int32_t ringNext;
  TreeView tree;  ///< in the first or the second of a pair of trees, as the channel has it

  TUTTI_PURE const SendConn& sendTo(ConnKind kind, int peer) const { return send[static_cast<int>(kind)][peer]; }
  TUTTI_PURE const RecvConn& recvFrom(ConnKind kind, int peer) const { return recv[static_cast<int>(kind)][peer]; }
};
static_assert(sizeof(ChannelView) == 64);

/// What all kernels of a communicator share; in device memory, constant after init (arrays may gain connections).
struct alignas(16) CommView {
  ChannelView* channels;
  const std::uint32_t* abortWord;  ///< non-zero: leave every wait (pinned host memory)
  std::int32_t rank;
  std::int32_t nRanks;
  std::uint32_t nChannels;
  std::uint32_t reserved;
  const CollNetView* collNet;  ///< null: there is none
  std::uint64_t reserved2;
};
static_assert(sizeof(CommView) == 48);

/// One collective. Channel c of channelLo..channelHi moves elements [count*i/n, count*(i+1)/n) rounded to grains; the
/// partition is computed by the same constexpr function on host and device (device/partition.h).
struct alignas(16) CollWork {
  const void* send;
  void* recv;
  std::uint64_t count;       ///< elements (copies: bytes), of the vector or per rank (AG, RS)
  std::uint64_t scalar;      ///< PreMulSum: bits of the factor, or its address if scalarIsPointer; SumPostDiv: N
  std::uint32_t chunkBytes;  ///< bytes of one chunk, a multiple of 512 and at most slotBytes * stepsPerChunk
  std::int32_t root;
  std::uint8_t channelLo;
  std::uint8_t channelHi;
  std::uint8_t stepsPerChunk;  ///< slots one chunk occupies
  std::uint8_t scalarIsPointer;
  DevOp op;               ///< for kernels that choose it at run time
  PairMethod pairMethod;  ///< where the kernel can (device/kernels/kernels.h); those of GPUs always go round the ring
  std::uint8_t type;      ///< the application's, as nccl.h numbers it: what a network that reduces is told
  std::uint8_t reserved;
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
  std::uint32_t recvOrder;  ///< which of the messages from recvPeer it is (device/recv_order.h)
};
static_assert(sizeof(P2pWork) == 48);

/// How far a communicator's kernels, which run one after the other, have come. In host memory.
struct alignas(64) KernelMarks {
  std::uint64_t begun;                ///< number of the latest kernel that has begun …
  std::uint64_t unused[7];            ///< each kernel writes `begun` from one block, `ended` from all
  std::uint64_t ended[kMaxChannels];  ///< … and, by channel, of the latest one that has ended there
};

/// When a channel worked for a work, by the device's clock (Thread::nanoseconds()); 0: not yet. In host memory.
struct alignas(16) Stamp {
  std::uint64_t begin;
  std::uint64_t end;
};
static_assert(sizeof(Stamp) == 16);

/// How many stamps a channel of a launch has. `messages`: its works are messages.
TUTTI_PURE std::size_t stampsOfChannel(std::size_t nWorks, bool messages) {
  return messages ? 2 * nWorks : nWorks;
}
/// Which of a launch's stamps is of the work on the channel `block` of the launch. A work of messages has two, the
/// first of what it sends (`half` 0), the other of what it receives (1).
TUTTI_PURE std::size_t collStamp(std::size_t nWorks, std::size_t block, std::size_t work) {
  return block * nWorks + work;
}
TUTTI_PURE std::size_t messageStamp(std::size_t nWorks, std::size_t block, std::size_t work, std::size_t half) {
  return (block * nWorks + work) * 2 + half;
}

/// The one parameter of every kernel. Works run in order; block b is channel firstChannel + b and skips works that do
/// not include it.
inline constexpr int kMaxWorksPerLaunch = 80;
struct alignas(16) KernelArgs {
  const CommView* comm;
  Stamp* stamps;  ///< where blocks write when they worked (collStamp(), messageStamp()); null: nobody wants to know
  KernelMarks* marks;    ///< null: nobody wants to know
  std::uint64_t number;  ///< for `marks`: later kernels of a communicator have larger ones, from 1 on
  std::uint32_t nWorks;
  std::uint32_t firstChannel;
  union {
    CollWork coll[kMaxWorksPerLaunch];
    P2pWork p2p[kMaxWorksPerLaunch];
  };
  /// By work, not 0: what it sends lies in memory that is registered, as far as it may be offered (SendPull).
  std::uint8_t registered[kMaxWorksPerLaunch];
};
static_assert(sizeof(KernelArgs) <= 4096, "fits the smallest kernel parameter space");

}  // namespace tutti::device
