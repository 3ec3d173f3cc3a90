// The memory of one device in one process: one range of addresses that other processes can map as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "softgpu/memory/memory.h"

namespace tutti::softgpu {

/// A sparse memfd, mapped once and never unmapped: who has mapped it elsewhere may read any allocation, past, present
/// and future, and never faults. It is larger than the device's memory, so that ranges that were exported need not be
/// used a second time: after a failure another process may still write into them. Thread-safe.
class Window {
 public:
  Window(int physicalDevice, std::uint64_t deviceBytes);

  /// Made on the first call and the same for ever; null where the system refuses so large a mapping.
  std::shared_ptr<Backing> backing();
  /// Where a range of `size` bytes begins: first fit. nullopt: no window, or it is used up.
  std::optional<std::size_t> allocate(std::size_t size);
  /// Notes that other processes hear of this range. A place where marked() can later be asked; kUnmarked if none is
  /// left.
  std::uint32_t exportRange(Allocation& allocation);
  /// Gives the pages back to the system, and the addresses too unless the range was exported.
  void free(const Allocation& allocation);

  /// In whatever process `window` is mapped: whether the allocation `id` that has this mark still exists.
  static bool marked(const Backing& window, std::uint32_t mark, std::uint64_t id);

  static constexpr std::size_t kSmallAlignment = 512;
  static constexpr std::size_t kLargeAlignment = std::size_t{2} << 20;
  static constexpr std::size_t kLargestSmall = std::size_t{256} << 10;
  static constexpr std::uint32_t kUnmarked = ~std::uint32_t{0};

 private:
  using Ranges = std::map<std::size_t, std::size_t>;  ///< offset -> bytes, no two adjacent
  std::uint32_t takeMark();
  /// Whether nobody has any of it, and the lock is held.
  bool unused(std::size_t begin, std::size_t end) const;
  void punch(std::size_t begin, std::size_t end);

  const int physicalDevice_;
  const std::size_t bytes_;
  std::mutex lock_;
  bool tried_ = false;
  std::shared_ptr<Backing> backing_;
  Ranges gaps_;
  Ranges retired_;  ///< exported once, freed: nobody gets these addresses again
  std::uint32_t nextMark_ = 1;
  std::vector<std::uint32_t> freeMarks_;
};

}  // namespace tutti::softgpu
