// One data movement call as the planner takes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/tuning/call_options.h"
#include "device/work.h"
#ifndef NCCL_NO_CUDA_HEADERS
#define NCCL_NO_CUDA_HEADERS  // the library knows the runtime's stream type only as a pointer
#endif
#include "nccl.h"

struct CUevent_st;
struct CUstream_st;

namespace tutti::comm {

enum class ApiFunc : std::uint8_t {
  AllReduce,
  Reduce,
  Broadcast,
  AllGather,
  ReduceScatter,
  Send,
  Recv,
  AlltoAll,
  Gather,
  Scatter
};
inline constexpr std::size_t kApiFuncs = 10;

/// Whether it is made of messages: Send, Recv, AlltoAll, Gather, Scatter.
bool isMessageFunc(ApiFunc func);
/// Whether it is one message: Send, Recv.
constexpr bool isPointToPoint(ApiFunc func) {
  return func == ApiFunc::Send || func == ApiFunc::Recv;
}
/// Whether it computes: AllReduce, Reduce, ReduceScatter.
constexpr bool isReducing(ApiFunc func) {
  return func == ApiFunc::AllReduce || func == ApiFunc::Reduce || func == ApiFunc::ReduceScatter;
}

/// The name without the "nccl" prefix, as messages and log lines show it.
std::string_view apiFuncName(ApiFunc func);

/// A reduction as kernels run it, resolved when the call is made: the operator may be destroyed right after.
struct Reduction {
  device::DevOp op = device::DevOp::Sum;
  bool scalarIsPointer = false;  ///< `scalar` is a device address that the kernel reads
  std::uint64_t scalar = 0;      ///< PreMulSum: bits of the factor in the data type; SumPostDiv: number of ranks
};

/// What profilers have been told of a call, and want to hear of what comes of it (plugin/profiler.h).
struct OpEvents {
  int mask = 0;  ///< kinds, with those above them
  bool captured = false;
  void* call = nullptr;  ///< handle of the call's own event
};

/// One call. `count` is what the API function calls count (per rank for AllGather, ReduceScatter, AlltoAll, Gather,
/// Scatter; of the vector otherwise). Send uses sendbuff only, Recv recvbuff only.
struct Op {
  ApiFunc func = ApiFunc::AllReduce;
  const void* sendbuff = nullptr;
  void* recvbuff = nullptr;
  std::size_t count = 0;
  ncclDataType_t datatype = ncclInt8;
  ncclRedOp_t redOp = ncclSum;  ///< as the user gave it; only reducing functions look at it
  int root = 0;                 ///< root, or the peer of Send and Recv
  CUstream_st* stream = nullptr;
  Reduction reduction{};              ///< filled by enqueue()
  bool registered = false;            ///< its buffers are; filled where a tuner plugin wants to know
  CallOptions options{};              ///< of ncclCollConfig_t, as the next two
  CUevent_st* launchEvent = nullptr;  ///< recorded before the first kernel of the group; null: none
  std::uint64_t tag = 0;              ///< for tools
  OpEvents events{};                  ///< filled by enqueue()
  std::uint32_t traceNumber = 0;      ///< its number among the communicator's operations in a trace, 0: none
};

/// Bytes of one element; 0 for a value that is no data type.
std::size_t datatypeBytes(ncclDataType_t type);
/// "ncclFloat32": the name in nccl.h; "?" for a value that is no data type.
std::string_view datatypeName(ncclDataType_t type);

}  // namespace tutti::comm
