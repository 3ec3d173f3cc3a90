// Numbers per world: threads of a block, size of the slots, how a collective is cut into chunks. The host plans with
// them; nothing here is compiled into a kernel but kMaxThreads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/work.h"

namespace tutti::device {

/// Upper bound of every kernel's block: leaves 128 registers per thread.
inline constexpr unsigned kMaxThreads = 512;

/// Chunks and slots are multiples of this many bytes, so that a chunk keeps the alignment of the user's buffer.
inline constexpr std::size_t kGrainBytes = 512;

/// A ring sends one chunk before it receives one: a chunk must fit into the FIFO with room to spare.
inline constexpr unsigned kMaxStepsPerChunk = kSteps / 2;

/// What the planner needs to know of the world that will run the kernels.
struct Policy {
  std::uint32_t collThreads;       ///< threads of a block of a collective; 1, or a multiple of 32
  std::uint32_t collThreadsSmall;  ///< the same for messages up to smallBytes
  std::uint32_t p2pThreads;        ///< threads of a block of sends and receives; 2, or a multiple of 64
  std::uint32_t simpleSlotBytes;   ///< Simple protocol; slots * kSteps is what NCCL_BUFFSIZE sets
  std::uint32_t llSlotBytes;       ///< LL protocol, flags included; what NCCL_LL_BUFFSIZE sets
  std::uint32_t ll128SlotBytes;    ///< LL128 protocol, flags included; what NCCL_LL128_BUFFSIZE sets
  std::uint32_t meshSlotBytes;     ///< Simple protocol of Mesh connections, of which there are many: at most this
  std::uint32_t meshLlSlotBytes;   ///< LL protocol of Mesh connections, flags included
  std::uint32_t maxChannels;       ///< more channels (blocks) than this gain nothing
  std::uint64_t smallBytes;
  std::uint64_t bytesPerChannel;   ///< a further channel pays off only with this much work for each
};

/// A GPU: hundreds of threads hide the latency of the links, and one block drives a part of them.
inline constexpr Policy kGpuPolicy{
    .collThreads = 512,
    .collThreadsSmall = 128,
    .p2pThreads = 512,
    .simpleSlotBytes = 512 << 10,
    .llSlotBytes = 64 << 10,
    .ll128SlotBytes = 600 << 10,
    .meshSlotBytes = 512 << 10,
    .meshLlSlotBytes = 64 << 10,
    .maxChannels = 32,
    .smallBytes = 64 << 10,
    .bytesPerChannel = 256 << 10,
};

/// The software GPU: one CPU thread runs everything that is on a device, so a second fiber only adds switches and a
/// second channel only adds waits. Send and receive need a fiber each. Slots: small enough that what is in flight
/// stays in the cache between its writer and its reader.
inline constexpr Policy kHostPolicy{
    .collThreads = 1,
    .collThreadsSmall = 1,
    .p2pThreads = 2,
    .simpleSlotBytes = 128 << 10,
    .llSlotBytes = 16 << 10,
    .ll128SlotBytes = 32 << 10,
    .meshSlotBytes = 128 << 10,
    .meshLlSlotBytes = 16 << 10,
    .maxChannels = 1,
    .smallBytes = 64 << 10,
    .bytesPerChannel = 64 << 20,
};

/// Bytes of one slot by protocol; 0: the protocol is not offered.
using SlotBytes = std::array<std::uint32_t, kProtocols>;

/// How a collective cuts its work: CollWork::chunkBytes and CollWork::stepsPerChunk.
struct ChunkShape {
  std::uint32_t chunkBytes;
  std::uint8_t stepsPerChunk;
};

/// `slotBytes`: what the connections were made with, a multiple of kGrainBytes. Chains (Broadcast, Reduce) take one
/// slot per chunk: nothing returns to the sender that would have to be overlapped.
constexpr ChunkShape chunkShape(Func func, std::uint32_t slotBytes) {
  const bool ring = func == Func::AllReduce || func == Func::AllGather || func == Func::ReduceScatter;
  const unsigned steps = ring ? kMaxStepsPerChunk : 1;
  return {slotBytes * steps, static_cast<std::uint8_t>(steps)};
}

/// Threads of a block for a message of `bytes` on one channel.
constexpr unsigned threadsFor(const Policy& policy, Func func, std::uint64_t bytes) {
  if (func == Func::SendRecv) return policy.p2pThreads;
  return bytes <= policy.smallBytes ? policy.collThreadsSmall : policy.collThreads;
}

/// Channels worth using for `bytes`, at least 1, at most `available`.
constexpr unsigned channelsFor(const Policy& policy, std::uint64_t bytes, unsigned available) {
  const std::uint64_t wanted = (bytes + policy.bytesPerChannel - 1) / policy.bytesPerChannel;
  const unsigned limit = available < policy.maxChannels ? available : policy.maxChannels;
  if (wanted <= 1 || limit <= 1) return 1;
  return wanted < limit ? static_cast<unsigned>(wanted) : limit;
}

static_assert(kGpuPolicy.simpleSlotBytes % kGrainBytes == 0 && kHostPolicy.simpleSlotBytes % kGrainBytes == 0);
static_assert(kGpuPolicy.collThreads <= kMaxThreads && kGpuPolicy.p2pThreads % 64 == 0);

}  // namespace tutti::device
