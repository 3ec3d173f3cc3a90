// What the host tells the kernels of device_micro, and what they answer: plain structs, the same on both sides.
#pragma once

#include <cstdint>

#include "device/conn_view.h"

namespace micro {

/// When a block worked: nanoseconds of the device's common clock, and cycles of the block's processor.
struct BlockTime {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t cycles;
  std::uint64_t extra;  ///< what else a kernel has to say; see there
};

/// Blocks copy, or add up, ranges of their own: `passes` pieces of `chunk` bytes, going round in spans. A span as large
/// as a chunk stays in the second-level cache.
struct CopyParams {
  const char* from;
  const char* other;  ///< second input of a sum
  char* to;
  std::uint64_t fromStride;  ///< between the ranges of two blocks
  std::uint64_t toStride;
  std::uint64_t fromSpan;
  std::uint64_t toSpan;
  std::uint64_t chunk;
  std::uint64_t passes;
  std::uint64_t barriers;  ///< barriers of the block after each pass
  BlockTime* times;        ///< one per block
};

/// What one thread does to publish what its block has stored.
enum class Publish : std::uint32_t {
  Nothing,
  FenceAcqRelGpu,
  FenceAcqRelSys,
  FenceScGpu,
  FenceScSys,  ///< what __threadfence_system() is
  StoreRelaxedSys,
  StoreReleaseSys,  ///< what ships
  StoreReleaseGpu,
  FenceSysStore,
  FenceGpuStore,
  EachThreadFencesSys,  ///< all threads before the barrier; then a relaxed store
  RedRelaxedSys,
  RedReleaseSys,
  AtomRelaxedSys,
  AtomReleaseSys,
  LoadRelaxedSys,
  LoadAcquireSys,
};

struct FenceParams {
  char* data;           ///< where the stores go: kFenceWindow bytes
  std::uint64_t* flag;  ///< in device or host memory
  Publish publish;
  std::uint32_t stores;  ///< of 16 bytes by each thread, before
  std::uint32_t iterations;
  std::uint32_t reserved;
  BlockTime* times;  ///< extra: cycles that the publishing thread spent on it, all together
};
inline constexpr std::uint64_t kFenceWindow = 1 << 20;

struct BarrierParams {
  std::uint64_t iterations;
  BlockTime* times;
};

/// Two blocks that send a message to and fro, and a third one that ends it when it takes too long.
struct PingParams {
  const tutti::device::SendConn* send;  ///< of the first block, of the second
  const tutti::device::RecvConn* recv;
  float* sent;             ///< what the first block sends
  float* passed;           ///< what the second block receives and returns
  float* received;         ///< what the first block receives
  std::uint64_t elements;  ///< of a message
  std::uint32_t warm;      ///< rounds before the clock is read
  std::uint32_t rounds;
  std::uint32_t* abortWord;
  std::uint32_t* done;  ///< blocks that have ended
  std::uint64_t limit;  ///< nanoseconds
  BlockTime* times;     ///< of the first block
};

/// Two threads that send a word to and fro.
struct FlagParams {
  std::uint64_t* there;
  std::uint64_t* back;
  std::uint32_t rounds;
  std::uint32_t ordered;  ///< release and acquire instead of relaxed accesses
  std::uint64_t limit;
  BlockTime* times;  ///< of the first block; extra: 1 if it ran into the limit
};

/// Blocks 2k write, blocks 2k+1 read what those wrote.
struct StressParams {
  char* data;            ///< kStressBytes for each pair
  std::uint64_t* flags;  ///< kStressFlagWords for each pair
  std::uint64_t rounds;  ///< that a pair makes …
  std::uint64_t limit;   ///< … unless these nanoseconds are over
  std::uint64_t spinLimit;
  std::uint32_t ordered;  ///< messages: release and acquire, as shipped; else relaxed accesses
  std::uint32_t reserved;
  struct StressCounts* counts;  ///< one for each pair
};
struct StressCounts {
  std::uint64_t checked;   ///< lines, words or messages that were looked at
  std::uint64_t fresh;     ///< … and had changed since the last look
  std::uint64_t torn;      ///< a flag without its data
  std::uint64_t mixed;     ///< parts of different stores, which the protocol allows
  std::uint64_t rounds;    ///< that the reader made
  std::uint64_t timedOut;  ///< threads that waited longer than spinLimit
};
inline constexpr std::uint64_t kStressBytes = 256 << 10;
inline constexpr std::uint64_t kStressFlagWords = 2 * 512 * 16;  ///< two words for each thread, in lines of their own
inline constexpr unsigned kStressThreads = 256;

/// Kernels that do nothing, or say when they ran.
struct StampParams {
  BlockTime* times;
  std::uint32_t* seen;  ///< in host memory: set to `number`
  std::uint32_t number;
  std::uint32_t index;  ///< of the answer in `times`
};
/// As long as the arguments of the library's kernels.
struct LongParams {
  StampParams stamp;
  std::uint8_t rest[4000];
};

struct ClockParams {
  std::uint64_t nanoseconds;  ///< to run
  BlockTime* times;           ///< extra: the smallest step of the common clock that was seen
};

}  // namespace micro
