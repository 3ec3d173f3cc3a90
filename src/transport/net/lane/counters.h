// Counters that a kernel and a host thread share.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti::net {

/// What a kernel wrote or will read next, with the order that counters need.
inline std::uint64_t loadCounter(const std::uint64_t* counter) {
  return std::atomic_ref(*const_cast<std::uint64_t*>(counter)).load(std::memory_order_acquire);
}
inline void storeCounter(std::uint64_t* counter, std::uint64_t value) {
  std::atomic_ref(*counter).store(value, std::memory_order_release);
}

}  // namespace tutti::net
