// A host-only program as people write them around collectives, built against the toolkit's own runtime where that is
// installed and run unmodified by softgpu-run. Prints one line per device; any failure is the exit status.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    const cudaError_t error = (call);                                                                   \
    if (error != cudaSuccess) {                                                                         \
      std::fprintf(stderr, "%s: %s (%s)\n", #call, cudaGetErrorString(error), cudaGetErrorName(error)); \
      return 1;                                                                                         \
    }                                                                                                   \
  } while (false)

static int exercise(int device) {
  constexpr size_t kCount = 1 << 16;
  std::vector<float> in(kCount, static_cast<float>(device));
  std::vector<float> out(kCount, -1);
  cudaDeviceProp properties;
  cudaStream_t stream;
  cudaEvent_t start, end;
  float* memory;
  float milliseconds = 0;
  CHECK(cudaSetDevice(device));
  CHECK(cudaGetDeviceProperties(&properties, device));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaMalloc(reinterpret_cast<void**>(&memory), kCount * sizeof(float)));
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaMemcpyAsync(memory, in.data(), kCount * sizeof(float), cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpyAsync(out.data(), memory, kCount * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  CHECK(cudaFree(memory));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaStreamDestroy(stream));
  std::printf("device %d: %s, bus %02x, copies %s\n", device, properties.name, properties.pciBusID,
              in == out ? "ok" : "wrong");
  return in == out ? 0 : 1;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  int failures = 0;
  for (int device = 0; device < devices; ++device) failures += exercise(device);
  CHECK(cudaGetLastError());
  std::printf("%d devices, %d failures\n", devices, failures);
  return failures == 0 && devices == 3 ? 0 : 1;
}
