// File descriptors and memory mappings that close themselves.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/handle.h"

namespace tutti {

struct FdTraits {
  using Type = int;
  static Type invalid() { return -1; }
  static void close(Type fd) { ::close(fd); }
  /// A program that was started with a closed standard stream must not find a descriptor of ours in its place: what it
  /// prints would go there. errno says why a descriptor could not be moved.
  static Type taken(Type fd) {
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    const Type moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno == EINVAL ? EMFILE : errno;  // that of a limit of 3
    ::close(fd);
    errno = error;
    return moved;
  }
};
/// Owns one file descriptor, which is never 0, 1 or 2: such a one is moved (then it has the flag close-on-exec), and
/// where the system refuses that, this owns none.
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
