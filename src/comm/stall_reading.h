// Reads counters of connections while kernels run, without ever waiting for the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/channels.h"
#include "comm/launch.h"
#include "comm/links.h"
#include "comm/stall_lines.h"
#include "gpu/event.h"
#include "gpu/memory.h"

namespace tutti {

/// Connections of one communicator, one reading at a time. Copies are put on the device's own stream, beside the
/// kernels, and asked about later: a device that is stuck keeps nobody waiting. One thread.
class CounterReader {
 public:
  /// Ends that one reading looks at; further ones are left out.
  static constexpr std::size_t kMostEnds = 128;
  enum class State : std::uint8_t { None, UnderWay, Done, Failed };

  /// All memory is taken here: what the driver does to get some might wait for kernels. The device must outlive it.
  static Result<std::unique_ptr<CounterReader>> create(const Device& device);
  CounterReader(const CounterReader&) = delete;
  ~CounterReader();

  /// Begins to read what `note`'s launch uses, unless a reading is under way.
  /// `hasLeft`: ranks whose memory, in which some counters lie, may be gone; none: nobody leaves.
  void begin(const ChannelSet& channels, const LaunchNote& note, int nRanks,
             const std::function<bool(int rank)>& hasLeft = {});
  /// How far that is. Done and Failed are said once.
  State poll();
  /// What was read last.
  const std::vector<EndReading>& ends() const { return ends_; }
  /// How many ends were left out then.
  std::size_t leftOut() const { return leftOut_; }

 private:
  static constexpr std::size_t kWords = 2;  ///< of one end: tail and head
  CounterReader(const Device& device, PinnedBuffer words, Event done)
      : device_(&device), words_(std::make_unique<PinnedBuffer>(std::move(words))), done_(std::move(done)) {}
  void list(const ChannelSet& channels, const LaunchNote& note, int nRanks,
            const std::function<bool(int rank)>& hasLeft);
  Status copyAll();
  std::uint64_t word(std::size_t end, std::size_t which) const;

  const Device* device_;
  std::unique_ptr<PinnedBuffer> words_;  ///< given up if the device still writes to it at the end
  Event done_;
  State state_ = State::None;
  struct Place {
    CUdeviceptr tail = 0;
    CUdeviceptr head = 0;
    const ProgressTask* task = nullptr;
  };
  std::vector<Place> places_;
  std::vector<EndReading> listed_;
  std::vector<EndReading> ends_;
  std::size_t leftOut_ = 0;
};

}  // namespace tutti
