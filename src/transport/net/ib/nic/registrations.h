// Memory that a NIC knows: each range once, however many connections use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/status.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

/// A range to be registered. Of GPU memory that comes as a dma-buf, `fd` and `offset` say where it is in it.
struct MemoryRange {
  void* address = nullptr;
  std::size_t bytes = 0;
  int fd = -1;  ///< -1: not as a dma-buf
  std::uint64_t offset = 0;
  /// What is written must be seen in the order in which it was written: control data.
  bool strictOrder = false;
};

/// The registrations of one NIC, for all connections of the process. Any thread.
class Registrations {
 public:
  /// All are borrowed and outlive the object. `name`: the NIC's, for messages.
  Registrations(const Verbs& verbs, ibv_pd* domain, std::string name, bool relaxedOrdering);
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  /// What is still registered then is given up.
  ~Registrations();

  /// The region that covers the range, rounded to pages; one more user of it. To be released as often. Errors:
  /// ncclSystemError with the limit that stands in the way.
  Result<ibv_mr*> acquire(const MemoryRange& range);
  Status release(ibv_mr* region);

  /// Whether NICs may write what is no control data in any order: the settings allow it, and the library can.
  bool ordersRelaxed() const { return relaxedOrdering_ && verbs_.reg_mr_iova2 != nullptr; }

  std::size_t count() const;  ///< of regions, for tests
  std::size_t bytes() const;  ///< that they cover

 private:
  /// dma-bufs of the same address may be different memory: they are told apart by the descriptor's file.
  struct Key {
    std::uintptr_t first = 0;
    std::size_t bytes = 0;
    std::uint64_t file = 0;  ///< inode of the dma-buf; 0: none
    std::uint64_t offset = 0;
    bool strictOrder = false;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    ibv_mr* region = nullptr;
    int users = 0;
  };

  static Result<Key> keyOf(const MemoryRange& range);
  ibv_mr* registerNow(const Key& key, const MemoryRange& range);
  Status refused(const Key& key, const MemoryRange& range, int error) const;
  /// Of a region that does not cover the range: it is given up.
  Status tooShort(const Key& key, ibv_mr* region) const;

  const Verbs& verbs_;
  ibv_pd* domain_;
  std::string name_;
  bool relaxedOrdering_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::map<ibv_mr*, Key> keys_;
  std::size_t bytes_ = 0;
};

/// RLIMIT_MEMLOCK of this process, bytes; empty: unlimited, or not known.
std::optional<std::size_t> lockedMemoryLimit();

/// What of errno is to be said of the limits on memory that NICs may use: ". RLIMIT_MEMLOCK of this process is 64 KiB,
/// …"; "" where they are not the cause.
std::string memlockRemedy(int error, std::size_t asked, std::size_t held);

}  // namespace tutti::net::ib
