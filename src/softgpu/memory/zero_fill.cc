#include "softgpu/memory/zero_fill.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tutti::softgpu {
namespace {

/// Shorter ranges are cleared sooner than the system is asked about them.
constexpr std::size_t kLeastAsked = std::size_t{32} << 10;

/// Cleared before the system is asked again: memory that is in use costs a call for each so many bytes.
constexpr std::size_t kStride = std::size_t{256} << 10;

/// Bytes of a file from `begin` on, up to `end`.
struct Extent {
  std::size_t begin;
  std::size_t end;
};

/// What is to be cleared next in `range`, from the first byte on that has memory behind it; empty, at its end, where
/// none has. All of it where the system does not say.
Extent nextData(int fd, Extent range) {
  const off_t data = ::lseek(fd, static_cast<off_t>(range.begin), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? Extent{range.end, range.end} : range;
  if (static_cast<std::size_t>(data) >= range.end) return {range.end, range.end};
  const auto begin = static_cast<std::size_t>(data);
  return {begin, range.end - begin < kStride ? range.end : begin + kStride};
}

/// What is behind it; -1: no file.
int fileOf(const Allocation& allocation) {
  if (allocation.backing != nullptr) return allocation.backing->fd();
  return allocation.physical == nullptr ? -1 : allocation.physical->fd.get();
}

}  // namespace

void zeroFill(const MemoryTable& table, char* address, std::size_t bytes) {
  const auto allocation = bytes < kLeastAsked ? nullptr : table.find(reinterpret_cast<std::uintptr_t>(address));
  const int file = allocation == nullptr ? -1 : fileOf(*allocation);
  if (file < 0) {
    std::memset(address, 0, bytes);
    return;
  }
  const std::size_t within = reinterpret_cast<std::uintptr_t>(address) - allocation->base;
  const std::size_t known = std::min(bytes, allocation->size - within);
  const std::size_t begin = allocation->offset + within;
  Extent left{begin, begin + known};
  while (left.begin < left.end) {
    const Extent data = nextData(file, left);
    std::memset(address + (data.begin - begin), 0, data.end - data.begin);
    left.begin = data.end;
  }
  std::memset(address + known, 0, bytes - known);
}

}  // namespace tutti::softgpu
