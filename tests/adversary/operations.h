// Random operations, the same on every rank for a seed, with checked results.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "nccl.h"

namespace tutti::adversary {

enum class OpKind { AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, SendRing, SendPair };

/// One operation of the job, the same on all ranks.
struct Operation {
  OpKind kind = OpKind::AllReduce;
  int comm = 0;           ///< of the job
  std::size_t count = 1;  ///< elements that one rank contributes
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t op = ncclSum;
  int root = 0;    ///< of the rooted ones; of SendPair the one that sends
  int other = 0;   ///< of SendPair the one that receives
  int number = 0;  ///< counts the job's operations
};

/// What batch `batch` of a job consists of: one operation, or one on each of two communicators. `sizes`: ranks of each
/// communicator of the job. `fewKernels`: sums of int32, and all of float32.
std::vector<Operation> batchOf(unsigned long seed, int batch, const std::vector<int>& sizes, bool fewKernels);

/// For reports: "AllReduce of 17 elements".
std::string nameOf(const Operation& operation);

/// Whether `rank` of the communicator has anything to do in it.
bool takesPart(const Operation& operation, int rank);

/// Buffers of one rank for one operation at a time. Used by one thread.
class OperationRun {
 public:
  OperationRun() = default;
  OperationRun(const OperationRun&) = delete;
  OperationRun& operator=(const OperationRun&) = delete;
  ~OperationRun();

  /// Gets device memory for the largest operation among `size` ranks. False if there is none.
  bool allocate(int size);

  /// Fills the buffers and calls the library. Returns what it said.
  ncclResult_t launch(const Operation& operation, ncclComm_t comm, int rank, int size, cudaStream_t stream);

  /// After the stream is done: an empty text, or what is wrong with the result.
  std::string check(const Operation& operation, int rank, int size) const;

 private:
  ncclResult_t call(const Operation& operation, ncclComm_t comm, int rank, int size, cudaStream_t stream) const;

  void* input_ = nullptr;
  void* output_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tutti::adversary
