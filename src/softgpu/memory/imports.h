// Memory of other processes, as far as it is mapped here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "softgpu/memory/memory.h"

namespace tutti::softgpu {

/// One mapping per memfd, however many handles lead to it, and a count of opens per range. Thread-safe.
class Imports {
 public:
  /// The mapping of this memfd, new or the one that is there; null where the system refuses. `inode`: the memfd's.
  std::shared_ptr<Backing> map(Fd fd, std::uint64_t inode, std::size_t bytes);
  /// The range that begins where `range` does has one open more. The first one enters it into `table` unless that is
  /// null: whole windows overlap what lies in them, so they are in no table.
  void open(const std::shared_ptr<Allocation>& range, MemoryTable* table);
  /// The range that begins exactly at `base`, null if none is open.
  std::shared_ptr<Allocation> find(std::uintptr_t base);
  /// One open less; the last one takes the range from its table.
  void close(std::uintptr_t base);

 private:
  struct Open {
    std::shared_ptr<Allocation> range;
    MemoryTable* table = nullptr;
    std::size_t count = 0;
  };
  std::mutex lock_;
  std::map<std::uint64_t, std::weak_ptr<Backing>> mappings_;
  std::map<std::uintptr_t, Open> open_;
};

}  // namespace tutti::softgpu
