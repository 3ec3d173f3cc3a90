// Launches as the library makes them (src/gpu/kernel_launch.cc), and what it has beside its stream.
#pragma once

#include "bench/device_micro/gpu.h"

namespace micro {

/// A launch, plain or with attributes.
struct Launcher {
  CUfunction function;
  CUstream stream;
  void* params;
  bool extended = false;
  bool remote = false;
  CUevent begun = nullptr;
  unsigned blocks = 1;
  unsigned threads = 512;

  void operator()() const {
    void* arguments[] = {params};
    if (!extended) {
      CU_CHECK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
      return;
    }
    CUlaunchAttribute attributes[2] = {};
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.blockDimX = threads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = attributes;
    if (remote) {
      CUlaunchAttribute& domain = attributes[config.numAttrs++];
      domain.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
      domain.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    }
    if (begun != nullptr) {
      CUlaunchAttribute& completion = attributes[config.numAttrs++];
      completion.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
      completion.value.launchCompletionEvent.event = begun;
    }
    CU_CHECK(cuLaunchKernelEx(&config, function, arguments, nullptr));
  }
};

/// Events without times, and a second stream, as the library has them.
struct Extras {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  Extras() {
    CU_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
  Extras(const Extras&) = delete;
  Extras& operator=(const Extras&) = delete;
  ~Extras() {
    cuEventDestroy(event);
    cuStreamDestroy(stream);
  }
};

}  // namespace micro
