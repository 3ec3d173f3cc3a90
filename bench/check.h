// Ends a benchmark at the first call that fails.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "nccl.h"

inline void check(bool good, const char* call) {
  if (good) return;
  std::fprintf(stderr, "%s failed: %s\n", call, ncclGetLastError(nullptr));
  std::exit(1);
}
#define CHECK_NCCL(...) check((__VA_ARGS__) == ncclSuccess, #__VA_ARGS__)
#define CHECK_CUDA(...) check((__VA_ARGS__) == cudaSuccess, #__VA_ARGS__)
