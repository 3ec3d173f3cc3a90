// From the tables to a decision: for one collective, for one message. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "comm/tuning/call_options.h"
#include "comm/tuning/tuning.h"

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

class TunerAdvice;

/// One line of the table that was weighed.
struct Candidate {
  device::Algorithm algorithm;
  device::Protocol protocol;
  Verdict verdict;
  double latencyUs;
  double microseconds;  ///< of no meaning unless Possible
};

inline constexpr std::size_t kCandidates = std::size_t{device::kAlgorithms} * device::kProtocols;

/// Every combination for one request, by algorithm, then protocol.
std::array<Candidate, kCandidates> weigh(const Tuning& tuning, const Request& request);

/// The quickest of them; ties go to the lower algorithm, then the lower protocol. ncclInvalidArgument where nothing of
/// what the call selects is possible, with what would be; ncclInvalidUsage where NCCL_ALGO and NCCL_PROTO leave nothing
/// for the function; ncclInternalError where nothing is left without them. `advice`: a tuner plugin that is asked, and
/// may then decide (comm/tuning/advice.h); its errors. Null: there is none.
Result<Choice> chooseCollective(const Tuning& tuning, const Request& request, TunerAdvice* advice = nullptr);

/// What `input.thresholds` come to, as applied.
std::uint64_t threadThreshold(const TuningInput& input, device::Algorithm algorithm, device::Protocol protocol);

/// How one message travels: LL while a channel carries little, then Simple; over more channels the more it carries.
struct MessageChoice {
  device::Protocol protocol = device::Protocol::Simple;
  unsigned nChannels = 1;
  double latencyUs = 0;
  double microseconds = 0;
};

/// A function of bytes and of the channels that messages between the two ranks may use: both ends of a message agree.
/// `toSelf`: source and destination are one rank.
MessageChoice chooseMessage(const Tuning& tuning, std::uint64_t bytes, unsigned mostChannels, bool toSelf);

}  // namespace tutti::comm
