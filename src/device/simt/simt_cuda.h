// simt.h for a GPU: thin names over PTX; every asm statement of the project is here. Include simt.h, not this.
//
// Orders and scopes. A peer may be another GPU or the CPU: counters use .sys. `volatile` accesses are relaxed.sys
// accesses that the compiler neither merges nor splits and that never hit in a first-level cache, which peers do not
// keep coherent; data in slots moves with them, ordered by the counters' release and acquire and the block's barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/simt/simt_types.h"

#define TUTTI_DEVICE __device__ __forceinline__
#define TUTTI_DEVICE_RARE TUTTI_DEVICE
#define TUTTI_HOST_DEVICE __host__ __device__ __forceinline__
#define TUTTI_UNROLL _Pragma("unroll")
#define TUTTI_NO_UNROLL _Pragma("unroll 1")

/// Defines `Name` as a kernel; see simt.h.
#define TUTTI_KERNEL(Name, Params, Shared, maxThreadsPerBlock, body)                                                \
  extern "C" __global__ void __launch_bounds__(maxThreadsPerBlock, 1) Name(const __grid_constant__ Params params) { \
    __shared__ Shared shared;                                                                                       \
    body(::tutti::simt::Thread(), shared, params);                                                                  \
  }

namespace tutti::simt {

inline constexpr std::size_t kPackBytes = 16;
inline constexpr bool kFusedStores = true;
inline constexpr bool kLoneThreads = false;

/// Nobody pulls: whether it pays on GPUs was never measured, and kernels have no registers to spare.
inline constexpr bool kPulls = false;

/// A branch that all threads take alike costs next to nothing beside a memory access: one loop serves all operations.
inline constexpr bool kHoistsOps = false;

/// Conversions between 8-bit floats and binary16 are instructions from here on; older processors compute them.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr bool kConvertsFloat8 = true;
#else
inline constexpr bool kConvertsFloat8 = false;
#endif

inline constexpr std::size_t kRunBytes = 4096;
inline constexpr bool kDelayPossible = false;
__host__ __device__ constexpr bool storesAreDelayed() {
  return false;
}
TUTTI_DEVICE std::byte* filledLater(std::byte* buffer) {
  return buffer;
}
__host__ __device__ constexpr bool streamingPays(std::uint64_t) {
  return false;
}
__host__ __device__ constexpr bool streamingToPeerPays(std::uint64_t) {
  return false;
}
TUTTI_DEVICE void finishStreaming() {}
TUTTI_DEVICE void orderReads() {
  __threadfence_system();
}

namespace raw {

// One volatile access of N bytes from or to raw bits.
template <std::size_t N>
using Bits = std::conditional_t<N == sizeof(Pack16), Pack16, UnsignedOf<N>>;

TUTTI_DEVICE void load(Pack16& v, const void* p) {
  asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];" : "=l"(v.word[0]), "=l"(v.word[1]) : "l"(p) : "memory");
}
TUTTI_DEVICE void store(void* p, const Pack16& v) {
  asm volatile("st.volatile.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.word[0]), "l"(v.word[1]) : "memory");
}
template <class B>
TUTTI_DEVICE void load(B& v, const void* p) {
  v = *static_cast<const volatile B*>(p);
}
template <class B>
TUTTI_DEVICE void store(void* p, const B& v) {
  *static_cast<volatile B*>(p) = v;
}

TUTTI_DEVICE std::uint32_t loadRelaxed(const std::uint32_t* p) {
  std::uint32_t v;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
TUTTI_DEVICE std::uint64_t loadRelaxed(const std::uint64_t* p) {
  std::uint64_t v;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
TUTTI_DEVICE std::uint32_t loadAcquire(const std::uint32_t* p) {
  std::uint32_t v;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
TUTTI_DEVICE std::uint64_t loadAcquire(const std::uint64_t* p) {
  std::uint64_t v;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
TUTTI_DEVICE void storeRelaxed(std::uint32_t* p, std::uint32_t v) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
TUTTI_DEVICE void storeRelaxed(std::uint64_t* p, std::uint64_t v) {
  asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
TUTTI_DEVICE void storeRelease(std::uint32_t* p, std::uint32_t v) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
TUTTI_DEVICE void storeRelease(std::uint64_t* p, std::uint64_t v) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

}  // namespace raw

class Thread {
 public:
  TUTTI_DEVICE unsigned index() const { return threadIdx.x; }
  TUTTI_DEVICE unsigned threads() const { return blockDim.x; }
  TUTTI_DEVICE unsigned block() const { return blockIdx.x; }
  TUTTI_DEVICE unsigned anew(unsigned value) const {
    asm volatile("" : "+r"(value));
    return value;
  }
  TUTTI_DEVICE unsigned blocks() const { return gridDim.x; }
  TUTTI_DEVICE unsigned lane() const { return threadIdx.x % 32; }
  TUTTI_DEVICE unsigned warp() const { return threadIdx.x / 32; }

  TUTTI_DEVICE void syncBlock() const { __syncthreads(); }
  TUTTI_DEVICE void syncGroup(unsigned id, unsigned nThreads) const {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(nThreads) : "memory");
  }
  TUTTI_DEVICE void syncGroup(unsigned id, Group group) const {
    if (group.size > 1) syncGroup(id, group.size);
  }
  TUTTI_DEVICE void syncWarp() const { __syncwarp(); }

  template <class T>
  TUTTI_DEVICE T shuffle(T value, unsigned sourceLane) const {
    return __shfl_sync(0xffffffffu, value, static_cast<int>(sourceLane));
  }
  TUTTI_DEVICE std::uint32_t ballot(bool predicate) const { return __ballot_sync(0xffffffffu, predicate); }
  TUTTI_DEVICE bool any(bool predicate) const { return __any_sync(0xffffffffu, predicate) != 0; }

  template <class T>
  TUTTI_DEVICE T loadRelaxedSys(const T* p) const {
    return raw::loadRelaxed(p);
  }
  template <class T>
  TUTTI_DEVICE T loadAcquireSys(const T* p) const {
    return raw::loadAcquire(p);
  }
  template <class T>
  TUTTI_DEVICE void storeRelaxedSys(T* p, T value) const {
    raw::storeRelaxed(p, value);
  }
  template <class T>
  TUTTI_DEVICE void storeReleaseSys(T* p, T value) const {
    raw::storeRelease(p, value);
  }
  // A fence takes 0.7 us. Without one: stores are not done before the branch that allows them is decided, and a load
  // has its value when what depends on it, a store or the barrier, is done.
  template <class T>
  TUTTI_DEVICE T loadCreditSys(const T* p) const {
    return raw::loadRelaxed(p);
  }
  template <class T>
  TUTTI_DEVICE void storeCreditSys(T* p, T value) const {
    raw::storeRelaxed(p, value);
  }
  template <class T>
  TUTTI_DEVICE T loadVolatile(const T* p) const {
    raw::Bits<sizeof(T)> bits;
    raw::load(bits, p);
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
  }
  template <class T>
  TUTTI_DEVICE void storeVolatile(T* p, T value) const {
    raw::Bits<sizeof(T)> bits;
    __builtin_memcpy(&bits, &value, sizeof(T));
    raw::store(p, bits);
  }

  // A line is whole because one instruction of a converged warp touches it. Nothing converges a warp for certain:
  // after a loop that its threads left one by one they may go on apart, and __syncwarp() lets them go on as they came.
  // Then the last parts are stored after the others, and loaded before them.
  TUTTI_DEVICE Pack16 loadLine16(Group, const Pack16* p) const {
    __syncwarp();
    Pack16 value{};
    if (converged()) {
      if (p != nullptr) value = loadVolatile(p);
      return value;
    }
    if (p != nullptr && endsLine(p)) value = loadVolatile(p);
    __threadfence_system();
    __syncwarp();
    if (p != nullptr && !endsLine(p)) value = loadVolatile(p);
    return value;
  }
  TUTTI_DEVICE void storeLine16(Group, Pack16* p, Pack16 value) const {
    __syncwarp();
    if (converged()) {
      if (p != nullptr) storeVolatile(p, value);
      return;
    }
    if (p != nullptr && !endsLine(p)) storeVolatile(p, value);
    __threadfence_system();
    __syncwarp();
    if (p != nullptr && endsLine(p)) storeVolatile(p, value);
  }

  TUTTI_DEVICE void fenceBlock() const { __threadfence_block(); }
  TUTTI_DEVICE void fenceGpu() const { __threadfence(); }
  TUTTI_DEVICE void fenceSys() const { __threadfence_system(); }

  /// Nothing: a poll already waits for memory, and sleeping costs latency.
  TUTTI_DEVICE void pause(bool = true) const {}
  TUTTI_DEVICE void trap(const char*) const { asm volatile("trap;"); }
  TUTTI_DEVICE std::uint64_t nanoseconds() const {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
  }

 private:
  TUTTI_DEVICE static bool endsLine(const Pack16* p) { return reinterpret_cast<std::uintptr_t>(p) % 128 == 112; }
  /// Whether all threads of the warp execute this together.
  TUTTI_DEVICE static bool converged() {
    unsigned active;
    asm volatile("activemask.b32 %0;" : "=r"(active)::"memory");
    return active == 0xffffffffu;
  }
};

template <class P>
TUTTI_DEVICE P loadData(const void* base, std::size_t index) {
  return Thread().loadVolatile(static_cast<const P*>(base) + index);
}
template <class P>
TUTTI_DEVICE void storeData(void* base, std::size_t index, P value) {
  Thread().storeVolatile(static_cast<P*>(base) + index, value);
}

template <class P>
TUTTI_DEVICE P loadPlain(const void* base, std::size_t index) {
  return loadData<P>(base, index);
}
template <class P>
TUTTI_DEVICE void storePlain(void* base, std::size_t index, P value) {
  storeData(base, index, value);
}

/// Calls f(i) for this thread's share of 0..n-1, strided so that a warp touches neighbours.
template <class F>
TUTTI_DEVICE void forEachPack(Group group, std::size_t n, F f) {
  for (std::size_t i = group.rank; i < n; i += group.size) f(i);
}

/// The same in batches: f<kBatch>(i, stride) while there is enough, then f<1>.
template <int kBatch, class F>
TUTTI_DEVICE void forEachBatch(Group group, std::size_t n, F f) {
  const std::size_t stride = group.size;
  std::size_t i = group.rank;
#pragma unroll 1
  for (; i + (kBatch - 1) * stride < n; i += kBatch * stride) f.template operator()<kBatch>(i, stride);
#pragma unroll 1
  for (; i < n; i += stride) f.template operator()<1>(i, stride);
}

template <class F>
TUTTI_DEVICE void forEachRun(Group group, std::size_t n, std::size_t, F f) {
  f(group, std::size_t{0}, n);
}

/// A copy in progress.
struct Copy {
  char* to;
  const char* from;
  std::size_t bytes;
};

/// All of a copy that fits into units B, if both addresses allow them; what is left remains in `copy`.
template <class B>
TUTTI_DEVICE void copyUnits(Group group, Copy& copy) {
  const auto both = reinterpret_cast<std::uintptr_t>(copy.to) | reinterpret_cast<std::uintptr_t>(copy.from);
  if (both % sizeof(B) != 0) return;
  forEachBatch<8>(group, copy.bytes / sizeof(B), [copy]<int kN>(std::size_t i, std::size_t stride) {
    B value[kN];
#pragma unroll
    for (int u = 0; u < kN; ++u) raw::load(value[u], reinterpret_cast<const B*>(copy.from) + i + u * stride);
#pragma unroll
    for (int u = 0; u < kN; ++u) raw::store(reinterpret_cast<B*>(copy.to) + i + u * stride, value[u]);
  });
  const std::size_t done = copy.bytes / sizeof(B) * sizeof(B);
  copy = {copy.to + done, copy.from + done, copy.bytes - done};
}

/// Copies between ranges that do not overlap, in the widest units that both addresses allow.
TUTTI_DEVICE void copyBytes(Group group, void* to, const void* from, std::size_t bytes, bool) {
  if (to == from) return;
  Copy copy{static_cast<char*>(to), static_cast<const char*>(from), bytes};
  copyUnits<Pack16>(group, copy);
  copyUnits<std::uint64_t>(group, copy);
  copyUnits<std::uint32_t>(group, copy);
  copyUnits<std::uint16_t>(group, copy);
  copyUnits<std::uint8_t>(group, copy);
}

}  // namespace tutti::simt
