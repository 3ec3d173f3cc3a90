// What the tuner is asked of one operation, and what it answers. Plain values.
#pragma once

#include <cstdint>

#include "comm/tuning/call_options.h"
#include "device/conn_view.h"
#include "device/work.h"
#include "nccl.h"

namespace tutti::comm {

/// One collective. Equal on all ranks.
struct Request {
  device::Func func = device::Func::AllReduce;
  device::DevOp op = device::DevOp::Sum;
  ncclDataType_t type = ncclInt8;
  std::uint64_t bytes = 0;  ///< of the larger side: the vector, or all ranks' blocks together
  unsigned inGroup = 1;     ///< collectives that are planned together with this one, itself included
  CallOptions options{};
  bool registered = false;  ///< its buffers are, for all that is known here; only tuner plugins are told
};

/// How an operation runs.
struct Choice {
  device::Algorithm algorithm = device::Algorithm::Ring;
  device::Protocol protocol = device::Protocol::Simple;
  unsigned nChannels = 1;
  unsigned nThreads = 1;         ///< of a block
  std::uint32_t chunkBytes = 0;  ///< of content, a multiple of device::kGrainBytes
  device::PairMethod pairMethod = device::PairMethod::Ring;
  std::uint8_t stepsPerChunk = 1;
  bool byPlugin = false;    ///< a tuner plugin's table has decided
  double latencyUs = 0;     ///< of microseconds, the part that does not depend on bytes
  double microseconds = 0;  ///< the model's estimate for the whole operation
};

/// How one message travels: LL while a channel carries little, then Simple; over more channels the more it carries.
struct MessageChoice {
  device::Protocol protocol = device::Protocol::Simple;
  unsigned nChannels = 1;
  double latencyUs = 0;
  double microseconds = 0;
};

}  // namespace tutti::comm
