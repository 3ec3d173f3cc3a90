// How device code on the software GPU reaches memory: directly, or through the store buffers of the weak-memory mode
// (docs/softgpu.md). Part of simt_host.h.
//
// Stores go straight to memory unless the software GPU asks for delay. Each access looks at one pointer; loops over
// data look once per loop and use loadPlain and storePlain inside (see kDelayPossible).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/simt/simt_host_abi.h"
#include "device/simt/simt_types.h"

namespace tutti::simt {

/// In this world stores may become visible late: code that computes in place goes through buffers of its own and
/// copyBytes() when storesAreDelayed().
inline constexpr bool kDelayPossible = true;

/// Null while stores go straight to memory. Set by each kernel on entry, to the same value by all.
inline std::atomic<const HostMemory*> delayingMemory{nullptr};

inline const HostMemory* delaying() {
  return delayingMemory.load(std::memory_order_relaxed);
}
inline bool storesAreDelayed() {
  return delaying() != nullptr;
}

inline void enterMemory(const HostMemory* memory) {
  if (delaying() != memory) delayingMemory.store(memory, std::memory_order_relaxed);
}

namespace raw {

// Single accesses of memory. 16 bytes are two of 8, each whole: every 8 bytes of an LL line carry their own flag, and
// LL128 lines have loads and stores of their own. Other threads of the host access the same bytes: all are atomics.
template <class T>
inline T load(const T* p, std::memory_order order) {
  T value;
  if constexpr (sizeof(T) == 16) {
    auto* words = reinterpret_cast<std::uint64_t*>(const_cast<T*>(p));
    const std::uint64_t both[2] = {std::atomic_ref(words[0]).load(order), std::atomic_ref(words[1]).load(order)};
    std::memcpy(&value, both, sizeof(T));
  } else {
    value = std::atomic_ref<T>(*const_cast<T*>(p)).load(order);
  }
  return value;
}

template <class T>
inline void store(T* p, const T& value, std::memory_order order) {
  if constexpr (sizeof(T) == 16) {
    std::uint64_t both[2];
    std::memcpy(both, &value, sizeof(T));
    auto* words = reinterpret_cast<std::uint64_t*>(p);
    std::atomic_ref(words[0]).store(both[0], order);
    std::atomic_ref(words[1]).store(both[1], order);
  } else {
    std::atomic_ref<T>(*p).store(value, order);
  }
}

}  // namespace raw

/// One access of 4, 8 or 16 bytes, aligned to its size.
template <class T>
inline T loadUnit(const T* p, std::memory_order order) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16));
  if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]] {
    T value;
    if (order != std::memory_order_acquire) {
      memory->loadEarly(&value, p, sizeof(T));
      return value;
    }
    memory->load(&value, p, sizeof(T));
    memory->acquire(FenceScope::Sys);
    return value;
  }
  return raw::load(p, order);
}

template <class T>
inline void storeUnit(T* p, const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16));
  if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]] {
    return memory->store(p, &value, sizeof(T));
  }
  raw::store(p, value, std::memory_order_relaxed);
}

template <class P>
inline P loadPlain(const void* base, std::size_t index) {
  return static_cast<const P*>(base)[index];
}
template <class P>
inline void storePlain(void* base, std::size_t index, P value) {
  static_cast<P*>(base)[index] = value;
}

template <class P>
inline P loadData(const void* base, std::size_t index) {
  if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]] {
    P value;
    memory->loadEarly(&value, static_cast<const P*>(base) + index, sizeof(P));
    return value;
  }
  return loadPlain<P>(base, index);
}
template <class P>
inline void storeData(void* base, std::size_t index, P value) {
  if (const HostMemory* memory = delaying(); memory != nullptr) [[unlikely]] {
    return memory->store(static_cast<P*>(base) + index, &value, sizeof(P));
  }
  storePlain<P>(base, index, value);
}

}  // namespace tutti::simt
