// One process, one thread, all devices: every device contributes a vector, every device gets the sum.
#include <vector>

#include "../common.h"

namespace {

struct Device {
  float* send = nullptr;
  float* recv = nullptr;
  cudaStream_t stream = nullptr;
};

constexpr std::size_t kCount = 1 << 20;

void fill(Device& device, float value) {
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&device.send), kCount * sizeof(float)));
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&device.recv), kCount * sizeof(float)));
  CHECK_CUDA(cudaStreamCreate(&device.stream));
  const std::vector<float> host(kCount, value);
  CHECK_CUDA(cudaMemcpy(device.send, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
}

bool holds(const Device& device, float value) {
  std::vector<float> host(kCount);
  CHECK_CUDA(cudaMemcpy(host.data(), device.recv, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (float v : host) {
    if (v != value) return false;
  }
  return true;
}

}  // namespace

int main() {
  int n = 0;
  CHECK_CUDA(cudaGetDeviceCount(&n));
  std::vector<Device> devices(static_cast<std::size_t>(n));
  for (int d = 0; d < n; ++d) {
    CHECK_CUDA(cudaSetDevice(d));
    fill(devices[static_cast<std::size_t>(d)], static_cast<float>(d + 1));
  }

  std::vector<ncclComm_t> comms(static_cast<std::size_t>(n));
  CHECK_NCCL(ncclCommInitAll(comms.data(), n, nullptr));

  // One thread that drives several devices must group their calls: each of them waits for all others.
  CHECK_NCCL(ncclGroupStart());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    CHECK_NCCL(
        ncclAllReduce(devices[d].send, devices[d].recv, kCount, ncclFloat, ncclSum, comms[d], devices[d].stream));
  }
  CHECK_NCCL(ncclGroupEnd());

  const float expected = static_cast<float>(n) * static_cast<float>(n + 1) / 2;
  bool correct = true;
  for (int d = 0; d < n; ++d) {
    Device& device = devices[static_cast<std::size_t>(d)];
    CHECK_CUDA(cudaSetDevice(d));
    CHECK_CUDA(cudaStreamSynchronize(device.stream));
    correct = correct && holds(device, expected);
    CHECK_CUDA(cudaFree(device.send));
    CHECK_CUDA(cudaFree(device.recv));
    CHECK_CUDA(cudaStreamDestroy(device.stream));
  }
  for (ncclComm_t comm : comms) CHECK_NCCL(ncclCommDestroy(comm));
  std::printf("%d devices: the sum is %g everywhere: %s\n", n, static_cast<double>(expected), correct ? "yes" : "NO");
  return correct ? 0 : 1;
}
