// Copies counters of connections while kernels run, without ever waiting for the device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "device/conn_view.h"
#include "gpu/event.h"
#include "gpu/memory.h"

namespace tutti::comm {

/// Where one end's counters lie: `tail` and `head` of device::ConnFifos, for all protocols.
struct CounterPlace {
  CUdeviceptr tail = 0;
  CUdeviceptr head = 0;
};

/// What lies there, by protocol.
struct CounterValues {
  std::array<std::uint64_t, device::kProtocols> tail{};
  std::array<std::uint64_t, device::kProtocols> head{};
  friend bool operator==(const CounterValues&, const CounterValues&) = default;
};

inline CounterPlace counterPlace(const device::ConnFifos& fifos) {
  return {reinterpret_cast<CUdeviceptr>(fifos.tail), reinterpret_cast<CUdeviceptr>(fifos.head)};
}

/// One copy at a time, put on the device's own stream, beside the kernels, and asked about later: a device that is
/// stuck keeps nobody waiting. One thread.
class CounterCopy {
 public:
  /// Ends that one copy takes: what a device that is stuck leaves lying in its queue must not fill that.
  static constexpr std::size_t kMostEnds = 128;
  enum class State : std::uint8_t { None, UnderWay, Done, Failed };

  /// All memory is taken here: what the driver does to get some might wait for kernels. The device must outlive it.
  static Result<CounterCopy> create(const gpu::Device& device);
  CounterCopy(CounterCopy&&) noexcept = default;
  ~CounterCopy();

  /// Begins to copy, unless a copy is under way; of more than kMostEnds places the first ones.
  void begin(std::span<const CounterPlace> places);
  /// How far that is. Done and Failed are said once.
  State poll();
  /// After Done: what lay in the place of that index.
  CounterValues values(std::size_t index) const;

 private:
  CounterCopy(const gpu::Device& device, gpu::PinnedBuffer words, gpu::Event done)
      : device_(&device), words_(std::make_unique<gpu::PinnedBuffer>(std::move(words))), done_(std::move(done)) {}
  Status copyAll(std::span<const CounterPlace> places);
  std::byte* at(std::size_t index, std::size_t which) const {
    return words_->host() + (2 * index + which) * device::kCountersBytes;
  }

  const gpu::Device* device_;
  std::unique_ptr<gpu::PinnedBuffer>
      words_;  ///< given up if the device still writes to it at the end; null: moved from
  gpu::Event done_;
  State state_ = State::None;
};

}  // namespace tutti::comm
