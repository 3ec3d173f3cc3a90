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

/// Most ranks of a communicator that direct algorithms serve: what a host may have.
inline constexpr int kMaxDirectRanks = 72;

/// Chunks and slots are multiples of this many bytes, so that a chunk keeps the alignment of the user's buffer.
inline constexpr std::size_t kGrainBytes = 512;

/// Slots with less are filled even where the receiver could read the sender's memory: that costs both sides a wait.
inline constexpr std::uint32_t kPullLeast = 4 << 10;

/// A ring sends one chunk before it receives one: a chunk must fit into the FIFO with room to spare.
inline constexpr unsigned kMaxStepsPerChunk = kSteps / 2;

/// Whose processors run the kernels.
enum class World : std::uint8_t { Gpu, Host };

/// What the planner needs to know of the world that will run the kernels. Arrays are indexed by Protocol.
struct Policy {
  World world;
  std::array<std::uint32_t, kProtocols>
      collThreads;  ///< most threads of a block of a collective; 1, or a multiple of 32
  std::array<std::uint64_t, kProtocols>
      bytesPerThread;        ///< a thread, and a further channel, pay off only with this much
  std::uint32_t p2pThreads;  ///< threads of a block of sends and receives; 2, or a multiple of 64
  std::array<std::uint32_t, kProtocols> slotBytes;  ///< Graph connections, flags included; 8 of them: NCCL_*BUFFSIZE
  std::array<std::uint32_t, kProtocols> meshSlotBytes;  ///< Mesh connections, of which there are many: at most this
  std::uint32_t maxChannels;                            ///< more channels (blocks) than this gain nothing
  std::uint64_t messagePerChannel;                      ///< bytes of a message that are worth a further channel
  std::uint64_t llMessageBytes;  ///< messages up to this many bytes per channel go by LL: NCCL_P2P_LL_THRESHOLD
};

/// A GPU: hundreds of threads hide the latency of the links, and one block drives a part of them.
inline constexpr Policy kGpuPolicy{
    .world = World::Gpu,
    .collThreads = {512, 512, 512},
    .bytesPerThread = {8, 8, 64},
    .p2pThreads = 512,
    .slotBytes = {64 << 10, 600 << 10, 512 << 10},
    .meshSlotBytes = {64 << 10, 0, 512 << 10},
    .maxChannels = 32,
    .messagePerChannel = 64 << 10,
    .llMessageBytes = 16 << 10,
};

/// The software GPU: one CPU thread runs everything that is on a device, so a second fiber only adds switches and a
/// second channel only adds waits. Send and receive need a fiber each. Slots: small enough that what is in flight
/// stays in the cache between its writer and its reader.
inline constexpr Policy kHostPolicy{
    .world = World::Host,
    .collThreads = {1, 1, 1},
    .bytesPerThread = {64 << 20, 64 << 20, 64 << 20},
    .p2pThreads = 2,
    .slotBytes = {16 << 10, 32 << 10, 128 << 10},
    .meshSlotBytes = {16 << 10, 0, 128 << 10},
    .maxChannels = 1,
    .messagePerChannel = 64 << 20,
    .llMessageBytes = 2 << 10,
};

/// Content that one slot of `bytes` carries: LL spends half on flags, LL128 a sixteenth.
TUTTI_PURE std::uint32_t slotContent(Protocol protocol, std::uint32_t bytes) {
  constexpr std::uint32_t kLine = 128, kLineContent = 120;
  if (protocol == Protocol::LL) return bytes / 2;
  return protocol == Protocol::LL128 ? bytes / kLine * kLineContent : bytes;
}

/// How a collective cuts its work: CollWork::chunkBytes and CollWork::stepsPerChunk.
struct ChunkShape {
  std::uint32_t chunkBytes;
  std::uint8_t stepsPerChunk;
};

/// The largest chunks for slots of `slotBytes`. Several slots make a chunk of a ring with the Simple protocol, where
/// something returns to the sender that would otherwise have to be overlapped; everything else takes one.
constexpr ChunkShape chunkShape(Func func, Algorithm algorithm, Protocol protocol, std::uint32_t slotBytes) {
  const bool ring = algorithm == Algorithm::Ring &&
                    (func == Func::AllReduce || func == Func::AllGather || func == Func::ReduceScatter);
  const unsigned steps = ring && protocol == Protocol::Simple ? kMaxStepsPerChunk : 1;
  const auto content = static_cast<std::uint32_t>(slotContent(protocol, slotBytes) / kGrainBytes * kGrainBytes);
  return {content * steps, static_cast<std::uint8_t>(steps)};
}

/// The same for the ring with the Simple protocol.
constexpr ChunkShape chunkShape(Func func, std::uint32_t slotBytes) {
  return chunkShape(func, Algorithm::Ring, Protocol::Simple, slotBytes);
}

static_assert(kGpuPolicy.slotBytes[2] % kGrainBytes == 0 && kHostPolicy.slotBytes[2] % kGrainBytes == 0);
static_assert(kGpuPolicy.collThreads[2] <= kMaxThreads && kGpuPolicy.p2pThreads % 64 == 0);

}  // namespace tutti::device
