// The proof that two ends of a connection address the same memory: patterns written by one side, read by the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <cuda.h>

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/memory.h"
#include "transport/common/fifo_layout.h"
#include "transport/common/transport.h"

namespace tutti::transport {

/// A word of the pattern.
struct ProbeWord {
  gpu::DeviceWord word;
  std::size_t protocol = 0;
  const char* what = "";  ///< "slot" or "counter"
};

/// One end of it, for memory laid out as fifo_layout.h says. Borrows all it names; a value for one call.
struct SelfTest {
  std::string_view transport;  ///< its name, for messages
  const gpu::Device* device;   ///< whose view of the memory is tested
  const LinkSpec* link;
  device::Direction direction;
  CUdeviceptr own;   ///< the memory of this end
  CUdeviceptr peer;  ///< that of the other end as the device addresses it

  /// Writes a pattern into the peer's counters and, as the sender, into the first and last words of its slots.
  Status write() const;
  /// Whether the peer's pattern arrived in ours; warns with what was found where it did not. Clears it in any case.
  Result<bool> check() const;

 private:
  /// The words that the `writer` of a pattern writes into `memory`, with the pattern.
  std::vector<ProbeWord> wordsOf(device::Direction writer, CUdeviceptr memory, int writerRank, int readerRank) const;
};

}  // namespace tutti::transport
