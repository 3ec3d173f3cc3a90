// simt.h for the software GPU: a CUDA thread is a fiber; memory is the host's. Include simt.h, not this.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "device/simt/simt_host_abi.h"
#include "device/simt/simt_host_loops.h"
#include "device/simt/simt_host_memory.h"

#define TUTTI_DEVICE inline
#define TUTTI_DEVICE_RARE [[gnu::noinline, gnu::cold]] inline
#define TUTTI_HOST_DEVICE inline
#define TUTTI_UNROLL _Pragma("GCC unroll 16")
#define TUTTI_NO_UNROLL

/// Defines `Name` as a function the software GPU can run and `Name_hostKernel`, its table entry.
#define TUTTI_KERNEL(Name, Params, Shared, maxThreadsPerBlock, body)                                             \
  static void Name##_entry(::tutti::simt::HostThread* self, const void* params) {                                \
    ::tutti::simt::enterMemory(self->memory);                                                                    \
    body(::tutti::simt::Thread(self), *static_cast<Shared*>(self->shared), *static_cast<const Params*>(params)); \
  }                                                                                                              \
  extern const ::tutti::simt::HostKernel Name##_hostKernel;                                                      \
  const ::tutti::simt::HostKernel Name##_hostKernel{#Name, Name##_entry, sizeof(Params), sizeof(Shared),         \
                                                    maxThreadsPerBlock};

namespace tutti::simt {

class Thread {
 public:
  explicit Thread(HostThread* self) : self_(self) {}

  unsigned index() const { return self_->thread; }
  unsigned threads() const { return self_->threads; }
  unsigned block() const { return self_->block; }
  unsigned anew(unsigned value) const { return value; }
  unsigned blocks() const { return self_->blocks; }
  unsigned lane() const { return self_->thread % 32; }
  unsigned warp() const { return self_->thread / 32; }

  void syncBlock() const { self_->ops->barrier(self_, 0, self_->threads); }
  void syncGroup(unsigned id, unsigned nThreads) const { self_->ops->barrier(self_, id, nThreads); }
  void syncWarp() const { self_->ops->warpSync(self_); }

  template <class T>
  T shuffle(T value, unsigned sourceLane) const {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = self_->ops->shuffle(self_, bits, sourceLane);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  std::uint32_t ballot(bool predicate) const { return self_->ops->ballot(self_, predicate); }
  bool any(bool predicate) const { return ballot(predicate) != 0; }

  template <class T>
  T loadRelaxedSys(const T* p) const {
    return loadUnit(p, std::memory_order_relaxed);
  }
  template <class T>
  T loadAcquireSys(const T* p) const {
    return loadUnit(p, std::memory_order_acquire);
  }
  template <class T>
  void storeRelaxedSys(T* p, T value) const {
    storeUnit(p, value);
  }
  template <class T>
  void storeReleaseSys(T* p, T value) const {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]] {
      return memory->storeRelease(p, &value, sizeof(T));
    }
    raw::store(p, value, std::memory_order_release);
  }
  template <class T>
  T loadCreditSys(const T* p) const {
    return loadAcquireSys(p);
  }
  template <class T>
  void storeCreditSys(T* p, T value) const {
    storeReleaseSys(p, value);
  }
  template <class T>
  T loadVolatile(const T* p) const {
    return loadUnit(p, std::memory_order_relaxed);
  }
  template <class T>
  void storeVolatile(T* p, T value) const {
    storeUnit(p, value);
  }

  // A line of 128 bytes is 8 parts of 16. On a GPU a warp reads or writes whole lines at once; here the lanes take
  // turns, so the last part is stored after and loaded before the others: who sees it, sees the line.
  Pack16 loadLine16(Group group, const Pack16* p) const {
    Pack16 value{};
    const bool last = endsLine(p);
    if (!last) converge(group);
    if (const HostMemory* memory = delaying(); memory != nullptr && p != nullptr) [[unlikely]] {
      memory->load(&value, p, sizeof(value));
    } else if (p != nullptr) {
      value.word[1] = loadUnit(&p->word[1], std::memory_order_acquire);
      value.word[0] = loadUnit(&p->word[0], std::memory_order_relaxed);
    }
    if (last) converge(group);
    return value;
  }
  void storeLine16(Group group, Pack16* p, Pack16 value) const {
    const bool last = endsLine(p);
    if (last) converge(group);
    if (const HostMemory* memory = delaying(); memory != nullptr && p != nullptr) [[unlikely]] {
      memory->storeLinePart(p, &value);
    } else if (p != nullptr) {
      raw::store(&p->word[0], value.word[0], std::memory_order_relaxed);
      raw::store(&p->word[1], value.word[1], last ? std::memory_order_release : std::memory_order_relaxed);
    }
    if (!last) converge(group);
  }

  /// Barrier `id` of a group; a lone thread has nobody to wait for.
  void syncGroup(unsigned id, Group group) const {
    if (group.size > 1) syncGroup(id, group.size);
  }

  void fenceBlock() const { fence(FenceScope::Block); }
  void fenceGpu() const { fence(FenceScope::Gpu); }
  void fenceSys() const { fence(FenceScope::Sys); }

  void pause(bool again = true) const { self_->ops->pause(self_, again); }
  void trap(const char* message) const { self_->ops->trap(self_, message); }
  std::uint64_t nanoseconds() const {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }

 private:
  static bool endsLine(const Pack16* p) { return reinterpret_cast<std::uintptr_t>(p) % 128 == 112; }
  void converge(Group group) const {
    if (group.size > 1) self_->ops->ballot(self_, false);
  }
  static void fence(FenceScope scope) {
    if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]] {
      memory->fence(scope);
    } else if (scope == FenceScope::Block) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // fibers of a block share a processor
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }

  HostThread* self_;
};

}  // namespace tutti::simt
