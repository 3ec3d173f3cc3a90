// simt.h for the software GPU: a CUDA thread is a fiber; memory is the host's. Include simt.h, not this.
#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "device/simt_host_abi.h"
#include "device/simt_host_loops.h"

#define TUTTI_DEVICE inline
#define TUTTI_HOST_DEVICE inline
#define TUTTI_UNROLL _Pragma("GCC unroll 16")

/// Defines `Name` as a function the software GPU can run and `Name_hostKernel`, its table entry.
#define TUTTI_KERNEL(Name, Params, Shared, maxThreadsPerBlock, body)                                       \
  static void Name##_entry(::tutti::simt::HostThread* self, const void* params) {                          \
    body(::tutti::simt::Thread(self), *static_cast<Shared*>(self->shared), *static_cast<const Params*>(params)); \
  }                                                                                                        \
  extern const ::tutti::simt::HostKernel Name##_hostKernel;                                                \
  const ::tutti::simt::HostKernel Name##_hostKernel{#Name, Name##_entry, sizeof(Params), sizeof(Shared), maxThreadsPerBlock};

namespace tutti::simt {

struct alignas(16) Pack16 {
  std::uint64_t word[2];
};

class Thread {
 public:
  explicit Thread(HostThread* self) : self_(self) {}

  unsigned index() const { return self_->thread; }
  unsigned threads() const { return self_->threads; }
  unsigned block() const { return self_->block; }
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
    return std::atomic_ref<T>(*const_cast<T*>(p)).load(std::memory_order_relaxed);
  }
  template <class T>
  T loadAcquireSys(const T* p) const {
    return std::atomic_ref<T>(*const_cast<T*>(p)).load(std::memory_order_acquire);
  }
  template <class T>
  void storeRelaxedSys(T* p, T value) const {
    std::atomic_ref<T>(*p).store(value, std::memory_order_relaxed);
  }
  template <class T>
  void storeReleaseSys(T* p, T value) const {
    std::atomic_ref<T>(*p).store(value, std::memory_order_release);
  }
  template <class T>
  T loadVolatile(const T* p) const {
    return *const_cast<const volatile T*>(p);
  }
  template <class T>
  void storeVolatile(T* p, T value) const {
    *const_cast<volatile T*>(p) = value;
  }

  /// Barrier `id` of a group; a lone thread has nobody to wait for.
  void syncGroup(unsigned id, Group group) const {
    if (group.size > 1) syncGroup(id, group.size);
  }

  void fenceBlock() const { std::atomic_signal_fence(std::memory_order_seq_cst); }
  void fenceGpu() const { std::atomic_thread_fence(std::memory_order_seq_cst); }
  void fenceSys() const { std::atomic_thread_fence(std::memory_order_seq_cst); }

  void pause() const { self_->ops->pause(self_); }
  void trap(const char* message) const { self_->ops->trap(self_, message); }

 private:
  HostThread* self_;
};

}  // namespace tutti::simt
