#include "transport/shm/numa.h"

#include <fstream>

#include "base/hwloc/binding.h"
#include "base/log.h"

namespace tutti::shm {

int numaNodeOf(const gpu::Device& device) {
  if (device.driver().softGpu) return -1;
  std::ifstream file("/sys/bus/pci/devices/" + device.facts().busIdText + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

void placeNear(void* address, std::size_t bytes, int node) {
  if (node < 0) return;
  const bool placed = preferNode(address, bytes, node);
  logTrace(kShm | kAllocHost, "{} bytes of shared memory on NUMA node {}{}", bytes, node, placed ? "" : " not allowed");
}

}  // namespace tutti::shm
