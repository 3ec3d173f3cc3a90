// Where a connection over a network has its slots.
#pragma once

#include <cstdint>

namespace tutti::net {

/// Where the slots of the Simple protocol lie at one end of a connection.
struct SlotPlace {
  bool onDevice = false;   ///< in device memory, which the network reads or writes itself; else in host memory
  bool dmaBuf = false;     ///< … and is given it as a dma-buf; else by its address
  bool orAddress = false;  ///< … by its address, too, where it refuses the dma-buf
  bool flushes = false;    ///< what was received there has to be flushed before a kernel may look
};

/// Who addresses memory: kernels of the device, or host threads and the network.
enum class Viewer : std::uint8_t { Kernels, Host };

}  // namespace tutti::net
