// How one fiber of the software GPU moves and combines data fast: contiguous runs, loops compiled for several vector
// units and chosen at run time (the binary itself is built for the oldest). Part of simt_host.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "device/simt/simt_host_memory.h"
#include "device/simt/simt_types.h"

#if defined(__clang__)
#define TUTTI_INDEPENDENT_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TUTTI_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#endif

namespace tutti::simt {

/// Data moves one element at a time in the source; the compiler makes vectors of them.
inline constexpr std::size_t kPackBytes = 1;

/// A second destination is cheaper as a copy of the first, which is still in the cache.
inline constexpr bool kFusedStores = false;

/// Groups of one thread are the usual case here, and have loops of their own.
inline constexpr bool kLoneThreads = true;

/// Connections may pull (SendPull): a copy into a slot and one out of it cost what everything else costs together.
inline constexpr bool kPulls = true;

/// A branch inside a loop keeps it from becoming vector code: operations are told apart outside.
inline constexpr bool kHoistsOps = true;

/// Bytes of a run that stay in the first-level cache between two passes.
inline constexpr std::size_t kRunBytes = 4096;

/// Whether an output of `bytes` should bypass the cache: it would be gone before anybody reads it, and lines need not
/// be fetched before they are overwritten.
inline bool streamingPays(std::uint64_t bytes) {
  return bytes >= (8u << 20) || storesAreDelayed();
}

/// The same for `bytes` written into a peer's slot. The peer's core has the slot's lines from the last time round. To
/// take them back, stores run at 10 GB/s where the cores share a cache and at 2.3 GB/s where they do not; past the
/// cache they run at 30 GB/s in both cases, and the peer reads at 18 GB/s what it would otherwise read at 18 to 45.
/// Measured on a virtual EPYC whose cores move between the two cases; below 8 KiB the peer's wait for memory outweighs
/// the gain.
inline bool streamingToPeerPays(std::uint64_t bytes) {
  return bytes >= (8u << 10) || storesAreDelayed();
}

/// A buffer that is filled before it is read, in ways that compilers cannot follow: keeps them from warning.
inline std::byte* filledLater(std::byte* buffer) {
  asm("" : "+r"(buffer) : : "memory");
  return buffer;
}

enum class VectorUnit { Base, Avx2, Avx512 };

inline VectorUnit detectVectorUnit() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return VectorUnit::Avx512;
  }
  if (__builtin_cpu_supports("avx2")) return VectorUnit::Avx2;
#endif
  return VectorUnit::Base;
}

inline VectorUnit vectorUnit() {
  static const VectorUnit kUnit = detectVectorUnit();
  return kUnit;
}

// The three copies of one loop. `f` is copied to a local so that its captured pointers stay in registers.
template <class F>
[[gnu::noinline]] void runBase(std::size_t begin, std::size_t end, const F& f) {
  const F body = f;
  TUTTI_INDEPENDENT_LOOP
  for (std::size_t i = begin; i < end; ++i) body(i);
}

#if defined(__x86_64__)
template <class F>
[[gnu::noinline, gnu::target("avx2")]] void runAvx2(std::size_t begin, std::size_t end, const F& f) {
  const F body = f;
  TUTTI_INDEPENDENT_LOOP
  for (std::size_t i = begin; i < end; ++i) body(i);
}

template <class F>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void runAvx512(
    std::size_t begin, std::size_t end, const F& f) {
  const F body = f;
  TUTTI_INDEPENDENT_LOOP
  for (std::size_t i = begin; i < end; ++i) body(i);
}
#endif

/// Calls f(i) for this fiber's contiguous share of 0..n-1. The calls must not depend on each other.
template <class F>
inline void forEachPack(Group group, std::size_t n, F f) {
  const std::size_t begin = n * group.rank / group.size;
  const std::size_t end = n * (group.rank + 1) / group.size;
  if (begin == end) return;
#if defined(__x86_64__)
  switch (vectorUnit()) {
    case VectorUnit::Avx512:
      return runAvx512(begin, end, f);
    case VectorUnit::Avx2:
      return runAvx2(begin, end, f);
    case VectorUnit::Base:
      break;
  }
#endif
  runBase(begin, end, f);
}

/// Calls f(i, 1-element batch) like forEachPack; batches are for GPUs, which want several loads in flight.
template <int kBatch, class F>
inline void forEachBatch(Group group, std::size_t n, F f) {
  forEachPack(group, n, [f](std::size_t i) { f.template operator()<1>(i, std::size_t{1}); });
}

/// Calls f(subgroup, begin, count) for pieces of at most `most` of this fiber's contiguous share of 0..n-1. Whoever
/// is called works alone: the subgroup is this fiber.
template <class F>
inline void forEachRun(Group group, std::size_t n, std::size_t most, F f) {
  const std::size_t end = n * (group.rank + 1) / group.size;
  for (std::size_t begin = n * group.rank / group.size; begin < end; begin += most) {
    f(Group{0, 1}, begin, end - begin < most ? end - begin : most);
  }
}

#if defined(__x86_64__)
inline constexpr std::size_t kLine = 64;

[[gnu::target("avx512f")]] inline void streamLinesAvx512(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i * kLine), _mm512_loadu_si512(from + i * kLine));
  }
}

inline void streamLinesBase(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines * 4; ++i) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i * 16),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * 16)));
  }
}

/// memcpy whose destination does not enter the cache. Followed by finishStreaming() before anybody else looks.
inline void streamCopy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % kLine;
  std::size_t head = misaligned == 0 ? 0 : kLine - misaligned;
  if (head > bytes) head = bytes;
  std::memcpy(to, from, head);
  const std::size_t lines = (bytes - head) / kLine;
  if (vectorUnit() == VectorUnit::Avx512) {
    streamLinesAvx512(to + head, from + head, lines);
  } else {
    streamLinesBase(to + head, from + head, lines);
  }
  const std::size_t done = head + lines * kLine;
  std::memcpy(to + done, from + done, bytes - done);
}

inline void finishStreaming() {
  if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]]
    memory->finishStreaming();
  _mm_sfence();
}
#else
inline void streamCopy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
inline void finishStreaming() {}
#endif

/// What this thread has read was read before whatever it reads from now on.
inline void orderReads() {
  if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]]
    return memory->acquire(FenceScope::Sys);
  std::atomic_thread_fence(std::memory_order_acquire);
}

/// Copies `bytes` between ranges that do not overlap; this fiber's contiguous share of it.
inline void copyBytes(Group group, void* to, const void* from, std::size_t bytes, bool streaming) {
  // Shares end on lines, so that no two fibers write one line.
  const std::size_t lines = (bytes + 63) / 64;
  const std::size_t begin = lines * group.rank / group.size * 64;
  std::size_t end = lines * (group.rank + 1) / group.size * 64;
  if (end > bytes) end = bytes;
  if (begin >= end || to == from) return;
  std::byte* target = static_cast<std::byte*>(to) + begin;
  const std::byte* source = static_cast<const std::byte*>(from) + begin;
  if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]] {
    memory->copy(target, source, end - begin, streaming);
  } else if (streaming) {
    streamCopy(target, source, end - begin);
  } else {
    std::memcpy(target, source, end - begin);
  }
}

}  // namespace tutti::simt
