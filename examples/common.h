// Error handling shared by the examples.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>

#define CHECK_CUDA(call)                                                                              \
  do {                                                                                                \
    const cudaError_t result = (call);                                                                \
    if (result != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(result)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

#define CHECK_NCCL(call)                                                                                   \
  do {                                                                                                     \
    const ncclResult_t result = (call);                                                                    \
    if (result != ncclSuccess) {                                                                           \
      std::fprintf(stderr, "%s:%d: %s: %s\n  %s\n", __FILE__, __LINE__, #call, ncclGetErrorString(result), \
                   ncclGetLastError(nullptr));                                                             \
      std::exit(1);                                                                                        \
    }                                                                                                      \
  } while (false)
