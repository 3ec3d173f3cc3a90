// One row per collective: how big its buffers are, how to call it, what comes out, how much the wire carries.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "nccl.h"

namespace bench {

/// One call on one rank. Buffers are device memory of that rank's device.
struct Call {
  const void* send;
  void* recv;
  std::size_t count;  ///< the API's count argument, in elements
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  int rank;
  int ranks;
  ncclComm_t comm;
  cudaStream_t stream;
};

struct Collective {
  const char* program;  ///< "all_reduce_perf"
  bool reduces;         ///< takes an op
  bool rooted;          ///< takes a root
  bool inPlace;         ///< may run with one buffer
  /// The API's count for a nominal size of `elements`; every buffer is a multiple of it.
  std::size_t (*count)(std::size_t elements, int ranks);
  std::size_t (*sendCount)(std::size_t count, int ranks);
  std::size_t (*recvCount)(std::size_t count, int ranks);
  /// Where the in-place send and receive buffers start inside one buffer, in elements.
  std::size_t (*inPlaceSend)(std::size_t count, int rank);
  std::size_t (*inPlaceRecv)(std::size_t count, int rank);
  ncclResult_t (*run)(const Call& call);
  /// Busbw / algbw (nccl-tests' PERFORMANCE notes): what each rank must at least move, relative to the size.
  double (*busFactor)(int ranks);
  /// What lies in block b (elements [b * count, (b + 1) * count)) of a result: the input of which rank, or kReduced:
  /// the reduction over all ranks, or kUntouched: nothing is promised; and at which element of that input it starts.
  struct Origin {
    int rank;
    std::size_t firstElement;
  };
  Origin (*origin)(const Call& call, std::size_t block);
};

inline constexpr int kReduced = -1;
inline constexpr int kUntouched = -2;

extern const Collective kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kSendRecv, kAlltoAll, kGather,
    kScatter;

}  // namespace bench
