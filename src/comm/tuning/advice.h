// What a tuner plugin may say of a collective, and how it is heeded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "comm/tuning/choice.h"
#include "topo/channels/costs.h"

namespace tutti::comm {

/// Microseconds by algorithm and protocol, in NCCL's order and without tutti's own algorithms; -1: not to be had.
using AdvisedTimes = std::array<std::array<float, topo::kCostProtocols>, topo::kCostAlgorithms>;

/// A tuner plugin as one communicator has it. One thread at a time. Errors are the plugin's.
class TunerAdvice {
 public:
  virtual ~TunerAdvice() = default;
  /// In messages: the plugin, its version and library.
  virtual std::string name() const = 0;
  /// `times`: in, the model's; out, what the plugin has made of them. `perPipeline`: collectives that a channel works
  /// off one after another. The number of channels that it wants, 0: no wish.
  virtual Result<unsigned> times(const Request& request, unsigned perPipeline, AdvisedTimes& times) = 0;
  virtual bool cutsChunks() const = 0;
  /// Bytes of a chunk, where the choice has `choice.chunkBytes`; of tutti's own algorithms nothing is asked.
  virtual Result<std::size_t> chunk(const Request& request, const Choice& choice) = 0;
};

/// What became of the table that was weighed.
struct AdvisedChoice {
  std::optional<Candidate> best;  ///< nothing: the plugin has forbidden all
  bool changed = false;           ///< the plugin has: its table decides, without tutti's own algorithms
  unsigned nChannels = 0;         ///< 0: no wish
};

/// Asks the plugin, and takes the smallest time; ties go to the lower algorithm, then the lower protocol. What is not
/// possible stays so, whatever it wrote there. `best`: the model's choice, which stands where the plugin changes
/// nothing. The estimate stays the model's.
Result<AdvisedChoice> adviseOn(TunerAdvice& advice, const Request& request, unsigned perPipeline,
                               std::span<const Candidate, kCandidates> table, const Candidate& best);

/// Asks it for the bytes of a chunk, at most `most`; the result is a multiple of device::kGrainBytes, and not 0.
Status adviseChunk(TunerAdvice& advice, const Request& request, std::uint32_t most, Choice& choice);

/// What a plugin has changed: "AllReduce: 1024 Bytes: NAME RING/LL 9.1 us -> 0.0 us, TREE/LL 12.0 us -> forbidden".
std::string adviceText(const Request& request, std::string_view plugin, const AdvisedTimes& before,
                       const AdvisedTimes& after, int nChannels);

}  // namespace tutti::comm
