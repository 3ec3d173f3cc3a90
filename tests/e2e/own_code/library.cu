// A library with a kernel and variables of its own, which a program opens, closes and opens again.
#include <cuda_runtime.h>

__device__ int calls = 0;
__constant__ int factor = 3;

__global__ void multiply(int* words, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i == 0) ++calls;
  if (i < count) words[i] *= factor;
}

/// Multiplies words of the device by the factor, and returns how often it did since the library was loaded; below 0:
/// a CUDA error.
extern "C" int multiplyOnDevice(int* words, int count, int newFactor) {
  int made = 0;
  cudaError_t error = cudaSuccess;
  if (newFactor != 0) error = cudaMemcpyToSymbol(factor, &newFactor, sizeof(newFactor));
  if (error == cudaSuccess) {
    multiply<<<(count + 63) / 64, 64>>>(words, count);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaMemcpyFromSymbol(&made, calls, sizeof(made));
  return error == cudaSuccess ? made : -static_cast<int>(error);
}
