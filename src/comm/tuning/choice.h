// From the tables to a decision: for one collective, for one message. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "comm/tuning/request.h"
#include "comm/tuning/tuning.h"

namespace tutti::comm {

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

/// A function of bytes and of the channels that messages between the two ranks may use: both ends of a message agree.
/// `toSelf`: source and destination are one rank.
MessageChoice chooseMessage(const Tuning& tuning, std::uint64_t bytes, unsigned mostChannels, bool toSelf);

}  // namespace tutti::comm
