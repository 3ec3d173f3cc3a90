// Device memory: memfd mappings that other processes can open, and the table that knows every address.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/fd.h"
#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

class Context;
using tutti::Fd;  // for the driver, which sees this namespace alone

/// One memfd, mapped once for reading and writing. Unmapped and closed with its last owner.
class Backing {
 public:
  /// Null when the system refuses (errno tells why). `size` is rounded up to whole pages.
  static std::shared_ptr<Backing> create(std::size_t size, int physicalDevice);
  /// Maps a memfd received from elsewhere; null when it cannot be mapped.
  static std::shared_ptr<Backing> adopt(Fd fd, std::size_t size);
  Backing(Fd fd, void* base, std::size_t size);
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  /// Of the memfd. -1 where the program has closed it: some close all that they find open, and by now the number may
  /// mean a file of theirs. Any thread.
  int fd() const;
  std::uint64_t inode() const { return inode_; }
  char* base() const { return static_cast<char*>(base_); }
  std::size_t size() const { return size_; }

 private:
  Fd fd_;
  void* base_;
  std::size_t size_;
  std::uint64_t inode_ = 0;
};

/// A memfd without a mapping, named after the device it stands for.
Fd createMemfd(std::size_t size, int physicalDevice);
/// The device written into a memfd's name by createMemfd, -1 when there is none.
int deviceOfMemfd(int fd);

/// Memory without an address: a CUmemGenericAllocationHandle.
struct Physical {
  ~Physical();
  Fd fd;
  std::size_t size = 0;
  CUmemAllocationProp properties = {};
  int chargedDevice = -1;  ///< device whose memory it counts against, -1 for none
  int references = 1;      ///< the program's own; guarded by the machine's lock
};

/// Bytes, and the most that there have been since somebody asked to begin anew. Any thread.
class PoolFigure {
 public:
  void add(std::uint64_t bytes);
  void subtract(std::uint64_t bytes) { now_.fetch_sub(bytes); }
  std::uint64_t now() const { return now_.load(); }
  std::uint64_t most() const { return most_.load(); }
  void beginAnew() { most_.store(now_.load()); }

 private:
  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> most_{0};
};

/// A CUmemoryPool: every device has one by default. Memory is taken from the device directly and goes back at once, so
/// what a pool has reserved is what is in use.
struct Pool {
  int device = 0;
  bool isDefault = false;
  std::uint64_t releaseThreshold = 0;  ///< guarded by the machine's lock
  std::array<int, 3> reuses{1, 1, 1};  ///< the switches, as they were set; the same
  PoolFigure used;
  PoolFigure reserved;
};

enum class MemoryKind { Device, Host, Registered, Managed, Virtual, Imported };

/// One range that the driver knows about. Immutable once in the table, but for `mark`.
struct Allocation {
  std::uintptr_t base = 0;
  std::size_t size = 0;
  MemoryKind kind = MemoryKind::Device;
  int device = -1;  ///< index of the owning device; for host memory that of the context it was made in
  Context* context = nullptr;
  std::uint64_t id = 0;                ///< unique in the process: CU_POINTER_ATTRIBUTE_BUFFER_ID
  std::shared_ptr<Backing> backing;    ///< null for registered and virtual memory
  std::size_t offset = 0;              ///< of base within backing
  std::shared_ptr<Physical> physical;  ///< virtual memory: what is mapped there
  std::shared_ptr<Pool> pool;          ///< which it came from, by cuMemAllocAsync
  unsigned flags = 0;                  ///< host memory: as given at allocation
  std::uint32_t mark = 0;              ///< device memory: not 0 once exported; the window's (window.h)
};

/// All known ranges by address. Thread-safe.
class MemoryTable {
 public:
  /// False when the range overlaps one in the table.
  bool insert(std::shared_ptr<Allocation> allocation);
  /// The range that holds `address`, null if none.
  std::shared_ptr<Allocation> find(std::uintptr_t address) const;
  /// Removes the range that begins exactly at `base`; null if there is none.
  std::shared_ptr<Allocation> take(std::uintptr_t base);
  std::vector<std::shared_ptr<Allocation>> all() const;
  std::uint64_t nextId() { return ids_.fetch_add(1) + 1; }

 private:
  mutable std::shared_mutex lock_;
  std::map<std::uintptr_t, std::shared_ptr<Allocation>> ranges_;
  std::atomic<std::uint64_t> ids_{0};
};

}  // namespace tutti::softgpu
