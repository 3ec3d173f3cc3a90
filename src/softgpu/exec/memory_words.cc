#include "softgpu/exec/memory_words.h"

#include <atomic>
#include <cstring>

namespace tutti::softgpu {
namespace {

template <class T>
void writeWord(std::uintptr_t to, const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  std::atomic_ref<T>(*reinterpret_cast<T*>(to)).store(value, std::memory_order_release);
}

template <class T>
void exchangeWord(std::uintptr_t to, const unsigned char* from, unsigned char* held) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  value = std::atomic_ref<T>(*reinterpret_cast<T*>(to)).exchange(value, std::memory_order_acq_rel);
  std::memcpy(held, &value, sizeof(T));
}

template <class T>
void readWord(unsigned char* to, std::uintptr_t from) {
  const T value = std::atomic_ref<T>(*reinterpret_cast<T*>(from)).load(std::memory_order_acquire);
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace

void writeMemory(std::uintptr_t to, const unsigned char* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes == 16) {
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
    typedef long long Vector __attribute__((vector_size(16)));
    Vector value;
    std::memcpy(&value, from, sizeof(value));
    *reinterpret_cast<volatile Vector*>(to) = value;
#else
    writeWord<std::uint64_t>(to, from);
    writeWord<std::uint64_t>(to + 8, from + 8);
#endif
  } else if (bytes == 8 && to % 8 == 0) {
    writeWord<std::uint64_t>(to, from);
  } else if (bytes == 4 && to % 4 == 0) {
    writeWord<std::uint32_t>(to, from);
  } else {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  }
}

void exchangeMemory(std::uintptr_t to, const unsigned char* from, unsigned char* held, std::size_t bytes) {
  if (bytes == 8 && to % 8 == 0) return exchangeWord<std::uint64_t>(to, from, held);
  if (bytes == 4 && to % 4 == 0) return exchangeWord<std::uint32_t>(to, from, held);
  readMemory(held, to, bytes);
  writeMemory(to, from, bytes);
}

void readMemory(unsigned char* to, std::uintptr_t from, std::size_t bytes) {
  if (bytes == 16 && from % 8 == 0) {
    readWord<std::uint64_t>(to + 8, from + 8);
    readWord<std::uint64_t>(to, from);
  } else if (bytes == 8 && from % 8 == 0) {
    readWord<std::uint64_t>(to, from);
  } else if (bytes == 4 && from % 4 == 0) {
    readWord<std::uint32_t>(to, from);
  } else {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  }
}

}  // namespace tutti::softgpu
