// Host memory in which kernels write when their channels worked (device::Stamp).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/work.h"
#include "gpu/memory.h"

namespace tutti::comm {

class StampPool;

/// The stamps of one plan, as long as they live; all 0 at first. They may outlive their pool, which frees their memory.
/// Destroyed on any thread, also where no CUDA call is allowed.
class Stamps {
 public:
  struct Piece {
    device::Stamp* host = nullptr;
    device::Stamp* onDevice = nullptr;
    std::size_t room = 0;
  };
  Stamps(std::shared_ptr<StampPool> pool, const Piece& piece) : pool_(std::move(pool)), piece_(piece) {}
  Stamps(const Stamps&) = delete;
  Stamps& operator=(const Stamps&) = delete;
  ~Stamps();

  /// What a kernel has written so far.
  device::Stamp read(std::size_t i) const;
  /// How many there are.
  std::size_t room() const { return piece_.room; }
  /// For KernelArgs::stamps.
  device::Stamp* onDevice() const { return piece_.onDevice; }
  /// All are 0 again. No kernel runs that writes them.
  void clear() const;

 private:
  std::shared_ptr<StampPool> pool_;
  Piece piece_;
};

/// Memory for stamps, kept for further plans. Any thread.
class StampPool : public std::enable_shared_from_this<StampPool> {
 public:
  /// How many stamps take() gives for so many that are asked for.
  static std::size_t roomFor(std::size_t stamps);
  /// At least so many stamps (> 0). `device` is that of all calls. Errors: the driver's.
  Result<std::unique_ptr<Stamps>> take(const gpu::Device& device, std::size_t stamps);
  /// Frees the memory, and gives none any more: no kernel runs that writes stamps, nobody looks at them.
  void close();

 private:
  friend class Stamps;
  void giveBack(const Stamps::Piece& piece);
  Status grow(const gpu::Device& device, std::size_t room);
  /// One that is free, if there is any.
  std::optional<Stamps::Piece> freeOne(std::size_t room);

  std::mutex mutex_;  ///< the rest
  std::vector<gpu::PinnedBuffer> memory_;
  std::map<std::size_t, std::vector<Stamps::Piece>> free_;  ///< by their room
};

}  // namespace tutti::comm
