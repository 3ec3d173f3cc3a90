// Wrong calls of the API, by name. Each says whether the library answered as it must: with an error where there is one
// to tell, and in any case.
#pragma once
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace tutti::adversary {

/// What a wrong call needs: a good communicator of two ranks in this process, and memory. Used by one thread.
struct Bench {
  std::mt19937_64 random;
  ncclComm_t comm = nullptr;  ///< rank 0's
  cudaStream_t stream = nullptr;
  void* memory = nullptr;  ///< of the device of rank 0
  std::size_t bytes = 0;

  /// A number that is no size anybody has.
  std::size_t absurdCount();
  /// A number below `bound` is never among these.
  int absurdRank(int bound);
};

struct Misuse {
  std::string name;
  /// Returns what the call said. Must leave no group open and no communicator behind.
  std::function<ncclResult_t(Bench&)> call;
  bool mustFail = true;  ///< ncclSuccess would be wrong
};

const std::vector<Misuse>& misuses();

}  // namespace tutti::adversary
