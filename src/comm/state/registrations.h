// Which buffers the application has registered with a communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::comm {

/// Ranges of whole pages, each with a count. What is left at the end is forgotten; the memory is the application's. Any
/// thread.
class Registrations {
 public:
  static constexpr std::size_t kPage = 4096;

  /// Counts a range that lies in one that is known, and enters any other one, also where it overlaps some. The handle:
  /// unique among those of the process that live.
  void* add(const void* begin, std::size_t bytes);
  /// Takes back one add(); false where the handle is none of this communicator.
  bool remove(const void* handle);
  /// Ranges that are registered.
  std::size_t size() const;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::size_t count = 1;
  };
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Range>> ranges_;
};

}  // namespace tutti::comm
