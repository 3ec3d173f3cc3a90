// What ranks tell each other when operations do not end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "device/conn_view.h"
#include "proxy/task.h"

namespace tutti::comm {

enum class RankDoing : std::uint8_t {
  Idle,        ///< nothing under way
  Connecting,  ///< in a call that waits for others to be connected with
  Running,     ///< kernels run
  Stalled,     ///< kernels run, and nothing has moved for longer than the limit
  Deaf,        ///< kernels run, and the device does not let its counters be read
};

/// Channels, a bit for each; those that lie 8 apart share one.
using ChannelBits = std::uint8_t;
constexpr ChannelBits channelBit(int channel) {
  return static_cast<ChannelBits>(1U << (channel % 8));
}

/// One rank's account of itself, as it travels.
struct RankState {
  static constexpr std::size_t kWaits = 4;
  static constexpr std::size_t kHolds = 16;
  /// Messages that it has given to somebody and that have not come through.
  struct Hold {
    std::int32_t receiver = -1;  ///< -1: no more; itself: a call of a network that reduces by itself
    std::int32_t relay = -1;     ///< the rank that sends in its stead; -1: none does
    proxy::BlockedBy blockedBy = proxy::BlockedBy::Nobody;
    device::ConnKind kind = device::ConnKind::Graph;  ///< of the connections …
    ChannelBits channels = 0;                         ///< … on these channels
    std::uint8_t unused = 0;
  };
  RankDoing doing = RankDoing::Idle;
  std::uint8_t asks = 0;          ///< 1: everybody else is to say how it is
  std::uint8_t replays = 0;       ///< 1: graphs were captured; what they replay is not counted
  std::uint8_t message = 0;       ///< 1: the last launch was of sends and receives
  std::uint32_t forMs = 0;        ///< how long that has been so
  std::uint64_t launched = 0;     ///< operations of all kinds
  std::uint64_t collectives = 0;  ///< that it has called, one that waits to be launched included
  std::array<std::int32_t, kWaits> waitsFor{-1, -1, -1, -1};  ///< ranks, the first ones; -1: no more
  std::array<char, 16> operation{};                           ///< zero-terminated; the last one
  /// By kind, on which channels the network brings nothing of these.
  std::array<std::array<ChannelBits, device::kConnKinds>, kWaits> starves{};
  std::array<Hold, kHolds> holds{};  ///< the most telling ones (comm/diagnosis/blocked_by.h)
};
static_assert(sizeof(RankState) == 256 /* kMaxState */ && std::is_trivially_copyable_v<RankState>);

inline std::string operationOf(const RankState& state) {
  return std::string(state.operation.data(), strnlen(state.operation.data(), state.operation.size()));
}
inline void setOperation(RankState& state, std::string_view name) {
  state.operation = {};
  std::memcpy(state.operation.data(), name.data(), std::min(name.size(), state.operation.size() - 1));
}

/// What other ranks have said. Any thread; nothing waits.
class StallBoard {
 public:
  /// Bytes of a rank's account as they came; anything else is ignored.
  void hear(int rank, std::span<const std::byte> bytes) {
    RankState state;
    if (bytes.size() != sizeof(state)) return;
    std::memcpy(&state, bytes.data(), sizeof(state));
    const auto known = [](const RankState::Hold& hold) {
      return hold.blockedBy <= proxy::BlockedBy::Relay && hold.kind <= device::ConnKind::Mesh;
    };
    if (state.doing > RankDoing::Deaf || !std::all_of(state.holds.begin(), state.holds.end(), known)) return;
    const std::lock_guard lock(mutex_);
    states_[rank] = {state, SteadyClock::now()};
    asked_ = asked_ || state.asks != 0;
    if (state.asks != 0) askedAt_ = SteadyClock::now();
  }
  /// Whether somebody has asked since the last call.
  bool takeAsked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, false);
  }
  /// When somebody has asked last; the clock's zero: nobody has.
  SteadyClock::time_point askedAt() const {
    const std::lock_guard lock(mutex_);
    return askedAt_;
  }
  /// What each rank has said since `when`.
  std::map<int, RankState> since(SteadyClock::time_point when) const {
    std::map<int, RankState> fresh;
    const std::lock_guard lock(mutex_);
    for (const auto& [rank, heard] : states_) {
      if (heard.at >= when) fresh.emplace(rank, heard.state);
    }
    return fresh;
  }

 private:
  struct Heard {
    RankState state;
    SteadyClock::time_point at;
  };
  mutable std::mutex mutex_;
  std::map<int, Heard> states_;
  bool asked_ = false;
  SteadyClock::time_point askedAt_{};
};

}  // namespace tutti::comm
