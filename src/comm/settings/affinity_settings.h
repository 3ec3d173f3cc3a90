// What the environment says about the processors of the thread for a GPU, as plain values.
#pragma once

#include <string>

namespace tutti::comm {

/// What the environment says about it.
struct AffinitySettings {
  std::string proxyCpus;   ///< NCCL_PROXY_CPUSET; empty: by the GPU
  bool ignoreJob = false;  ///< NCCL_IGNORE_CPU_AFFINITY: the GPU's processors, also those that the job may not use
};

}  // namespace tutti::comm
