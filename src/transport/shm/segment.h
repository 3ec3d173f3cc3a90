// A piece of host memory that several processes map: anonymous, outside every file system.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace tutti::shm {

/// Owns one mapping of a memfd. The memory goes with its last mapping and descriptor, in whatever process.
class Segment {
 public:
  /// Zeroed memory that is there in full, near `numaNode` where that is known (not negative) and allowed; sealed, so
  /// that no holder of the descriptor can take it from under the others. `about` names the purpose in errors: "SHM
  /// channel 0, rank 1 with rank 2". Errors: ncclSystemError with call, size, the system's words and a remedy.
  static Result<Segment> create(std::size_t bytes, int numaNode, std::string_view about);
  /// Maps what another process created with as many bytes; refuses what could shrink or has another size.
  static Result<Segment> adopt(Fd fd, std::size_t bytes, std::string_view about);

  /// In whole pages.
  std::span<std::byte> memory() const;
  /// For whoever else shall map it; may be taken once.
  [[nodiscard]] Fd takeDescriptor() { return std::move(fd_); }

 private:
  Segment(Fd fd, Mapping mapping) : fd_(std::move(fd)), mapping_(std::move(mapping)) {}
  Fd fd_;
  Mapping mapping_;
};

}  // namespace tutti::shm
