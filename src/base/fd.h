// File descriptors and memory mappings that close themselves.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

#include "base/handle.h"

namespace tutti {

struct FdTraits {
  using Type = int;
  static Type invalid() { return -1; }
  static void close(Type fd) { ::close(fd); }
};
/// Owns one file descriptor.
using Fd = Handle<FdTraits>;

/// One mmap()ed range.
struct MappedRange {
  void* address = nullptr;
  std::size_t bytes = 0;
  friend bool operator==(const MappedRange&, const MappedRange&) = default;
};

struct MappingTraits {
  using Type = MappedRange;
  static Type invalid() { return {}; }
  static void close(Type range) { ::munmap(range.address, range.bytes); }
};
/// Owns one mmap()ed range.
using Mapping = Handle<MappingTraits>;

}  // namespace tutti
