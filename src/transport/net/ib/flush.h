// What NICs have written to GPU memory, pushed out to where the GPU sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "transport/net/ib/nic/options.h"

namespace tutti::net::ib {

class EndMemory;
class QueuePairs;
struct IbPort;

/// For each port a queue pair that is connected with itself: a read over it comes back after all that the port's NIC
/// has written before. Used by one thread at a time.
class FlushPairs {
 public:
  /// Errors: those of QueuePairs and EndMemory; ncclSystemError where a queue pair cannot reach itself.
  static Result<std::unique_ptr<FlushPairs>> open(const std::vector<const IbPort*>& ports, const IbOptions& options);
  ~FlushPairs();

  /// Begins to read a byte at `address`, which `keys` name for each port, through all ports. Errors: ncclSystemError;
  /// ncclInternalError (as many are under way as may be).
  Status begin(std::uint64_t address, const std::array<std::uint32_t, kMostChildren>& keys);
  /// Reads that have come back since the first, through all ports. Errors: ncclSystemError.
  Result<std::uint64_t> finished();
  std::uint64_t begun() const { return begun_; }

 private:
  static constexpr std::uint32_t kReads = 256;
  /// One port's.
  struct Own {
    std::unique_ptr<QueuePairs> pair;
    std::uint64_t finished = 0;
  };
  FlushPairs();

  std::unique_ptr<EndMemory> into_;
  std::vector<Own> own_;  ///< ends before what it reads into
  std::uint64_t begun_ = 0;
};

}  // namespace tutti::net::ib
