#include "transport/shm/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>

#include "base/log.h"

namespace tutti::shm {

int numaNodeOf(const gpu::Device& device) {
  if (device.driver().softGpu) return -1;
  std::ifstream file("/sys/bus/pci/devices/" + device.facts().busIdText + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

void preferNode(void* address, std::size_t bytes, int node) {
  constexpr int kMostNodes = 1024;
  constexpr int kBits = sizeof(unsigned long) * CHAR_BIT;
  if (node < 0 || node >= kMostNodes) return;
  std::array<unsigned long, kMostNodes / kBits> mask{};
  mask[static_cast<std::size_t>(node / kBits)] |= 1UL << (node % kBits);
  // The system call itself: libnuma is not everywhere. It reads one bit less than it is told.
  const long result = ::syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, mask.data(), kMostNodes + 1, 0);
  trace(kShm | kAllocHost, "{} bytes of shared memory on NUMA node {}{}", bytes, node,
        result == 0 ? "" : " not allowed");
}

}  // namespace tutti::shm
