// Operations with known results, and where they are carried out.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "lifecycle/world.h"
#include "nccl.h"

namespace lifecycle {

/// Buffers of one operation at a time. Belongs to one thread.
class Slot {
 public:
  /// Gets memory for the largest operation among `ranks` ranks. False if there is none.
  bool allocate(int ranks, cudaStream_t stream);
  void release();

  /// Before an operation: what it is, and of which communicator; fills its buffers, on the stream.
  bool prepare(const Op& op, int comm, int rank, int size);
  /// Calls the library.
  ncclResult_t call(ncclComm_t comm) const;
  bool done() const { return cudaStreamQuery(stream_) != cudaErrorNotReady; }
  /// Once it is done: what is wrong with the result, or nothing. Poisons the output, so that it can be carried out
  /// again from a graph.
  std::string look();
  /// The operation owes no result.
  void forget() { busy_ = false; }

  bool busy() const { return busy_; }
  int comm() const { return comm_; }
  cudaStream_t stream() const { return stream_; }
  /// At least one element of any type.
  float* memory() const { return static_cast<float*>(in_); }
  void* output() const { return out_; }
  std::size_t bytes() const { return bytes_; }  ///< of the input, and of the output
  const Op& op() const { return op_; }

 private:
  bool poison();

  void* in_ = nullptr;
  void* out_ = nullptr;
  std::size_t bytes_ = 0;  ///< of each
  cudaStream_t stream_ = nullptr;
  std::vector<unsigned char> values_;
  bool busy_ = false;
  Op op_;
  int comm_ = -1;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace lifecycle
