// Reads what the connections of the last launch are at while kernels run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/diagnosis/counter_copy.h"
#include "comm/diagnosis/stall_lines.h"
#include "comm/launch/launch_note.h"

namespace tutti::proxy {
class ProgressTask;
}

namespace tutti::comm {

class ChannelSet;

/// Connections of one communicator, one reading at a time, which keeps nobody waiting (comm/diagnosis/counter_copy.h).
/// One thread.
class CounterReader {
 public:
  using State = CounterCopy::State;
  /// Ends that one reading looks at; further ones are left out.
  static constexpr std::size_t kMostEnds = CounterCopy::kMostEnds;

  /// The device must outlive it.
  static Result<std::unique_ptr<CounterReader>> create(const gpu::Device& device);

  /// Begins to read what `note`'s launch uses, unless a reading is under way.
  /// `hasLeft`: ranks whose memory, in which some counters lie, may be gone: that they have left is all that is said of
  /// their ends; none: nobody leaves.
  void begin(const ChannelSet& channels, const LaunchNote& note, int nRanks,
             const std::function<bool(int rank)>& hasLeft = {});
  /// Nobody wants to know any more what is under way: what comes of it tells of an operation that is over.
  void forget() { forgotten_ = underWay_; }
  /// How far that is. Done and Failed are said once; nothing of what was forgotten, but for UnderWay.
  State poll();
  /// What was read last.
  const std::vector<EndReading>& ends() const { return ends_; }
  /// How many ends were left out then.
  std::size_t leftOut() const { return leftOut_; }

 private:
  explicit CounterReader(CounterCopy copy) : copy_(std::move(copy)) {}
  void list(const ChannelSet& channels, const LaunchNote& note, int nRanks,
            const std::function<bool(int rank)>& hasLeft);

  CounterCopy copy_;
  bool underWay_ = false;
  bool forgotten_ = false;            ///< what is under way
  std::vector<CounterPlace> places_;  ///< of the listed ends whose peers have not left, in their order
  std::vector<const proxy::ProgressTask*> tasks_;
  std::vector<EndReading> listed_;
  std::vector<EndReading> ends_;
  std::size_t leftOut_ = 0;
};

}  // namespace tutti::comm
