// What NICs have written to GPU memory, pushed out to where the GPU sees it.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
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
  /// Through those of `ports` that are used. Errors: those of QueuePairs and EndMemory; ncclSystemError where a queue
  /// pair cannot reach itself.
  static Result<std::unique_ptr<FlushPairs>> open(const std::vector<const IbPort*>& ports, const IbOptions& options,
                                                  const std::bitset<kMostChildren>& used);
  ~FlushPairs();

  /// Begins to read a byte at `address`, which `keys` name for each port, through all ports. Errors: ncclSystemError;
  /// ncclInternalError (as many are under way as may be).
  Status begin(std::uint64_t address, const std::array<std::uint32_t, kMostChildren>& keys);
  /// Reads that have come back since the first, through all ports that are used. Errors: ncclSystemError.
  Result<std::uint64_t> finished();
  /// Where the connection may go on without a port: errors are asked for here, and what is under way does not end
  /// before use() says what becomes of it.
  void expectFailures() { failuresExpected_ = true; }
  std::bitset<kMostChildren> failedPorts() const;
  /// Through these alone from now on. What the others have under way counts as come back: they have no queue pairs any
  /// more that could write. Errors: those of open().
  Status use(const std::bitset<kMostChildren>& ports);
  std::uint64_t begun() const { return begun_; }

 private:
  static constexpr std::uint32_t kReads = 256;
  /// One port's.
  struct Own {
    std::unique_ptr<QueuePairs> pair;  ///< null: not used
    std::uint64_t finished = 0;
    bool failed = false;
  };
  FlushPairs(const std::vector<const IbPort*>& ports, const IbOptions& options);
  Status openOne(std::size_t port);
  Status failedWith(Own& own, const std::string& why) const;

  const std::vector<const IbPort*> ports_;
  const IbOptions options_;
  bool failuresExpected_ = false;

  std::unique_ptr<EndMemory> into_;
  std::vector<Own> own_;  ///< ends before what it reads into
  std::uint64_t begun_ = 0;
};

}  // namespace tutti::net::ib
