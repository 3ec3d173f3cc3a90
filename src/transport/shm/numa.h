// Where host memory lies: near which CPUs.
#pragma once

#include <cstddef>

#include "gpu/context.h"

namespace tutti::shm {

/// The NUMA node of the CPUs that the device hangs under; -1 where the system does not say, and on the software GPU.
int numaNodeOf(const gpu::Device& device);

/// Asks for pages of the range, none of which has been touched, to be taken from that node while it has any. Quietly
/// does nothing where the node is negative or the system does not allow it (containers).
void placeNear(void* address, std::size_t bytes, int node);

}  // namespace tutti::shm
