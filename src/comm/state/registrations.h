// Which buffers the application has registered with a communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::transport {
class RegisteredMemory;
}

namespace tutti::comm {

/// Ranges of whole pages, each with a count. What is left at the end is forgotten; the memory is the application's. Any
/// thread.
class Registrations {
 public:
  static constexpr std::size_t kPage = 4096;

  Registrations();
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// Counts a range that lies in one that is known, and enters any other one, also where it overlaps some. The handle:
  /// unique among those of the process that live.
  void* add(const void* begin, std::size_t bytes);
  /// Takes back one add(); false where the handle is none of this communicator. After the last one of a range networks
  /// know it no more, but for what is under way from there.
  bool remove(const void* handle);
  /// Ranges that are registered.
  std::size_t size() const;

  /// Counts an allocation as registered for the graph of a capture, unless one is that covers it; whether it was not …
  bool addForGraph(std::uintptr_t begin, std::size_t bytes, unsigned long long capture);
  /// … until the result ends, which may be where no CUDA call is allowed. This need not live then.
  std::shared_ptr<const void> holdForGraph(unsigned long long capture) const;
  /// Whether an operation, of that capture or of none (0), may be told that its buffer is registered.
  bool cover(std::uintptr_t begin, std::size_t bytes, unsigned long long capture) const;
  /// The same ranges as transports see them.
  const std::shared_ptr<transport::RegisteredMemory>& memory() const { return memory_; }
  /// Takes back from networks what graphs have left behind.
  void tidy();

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uint64_t id = 0;  ///< in `memory_`
    std::size_t count = 1;
  };
  const std::shared_ptr<transport::RegisteredMemory> memory_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Range>> ranges_;
};

}  // namespace tutti::comm
