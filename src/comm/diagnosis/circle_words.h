// What ranks tell each other of calls that cannot run because another communicator's call is in front of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/clock.h"
#include "comm/plan/op.h"

namespace tutti::comm {

/// How a rank's call stands behind a call of another communicator.
enum class Behind : std::uint8_t {
  Stream,   ///< later on the same stream
  Device,   ///< launched later, on another stream, and not begun by the device
  Thread,   ///< not made: the thread that makes them waits inside the other call
  Waiting,  ///< not made: the thread that makes them has made the other call, which does not end
};

/// A call that a rank has made and that waits for another rank, as it travels.
struct CircleHop {
  std::uint64_t comm = 0;
  std::uint32_t number = 0;  ///< among the communicator's collectives
  std::int32_t rank = -1;    ///< that is waited for, in that communicator; -1: not known, and no hop follows
  std::int32_t pid = 0;      ///< of it, as the next three
  std::uint16_t device = 0;
  ApiFunc function = ApiFunc::AllReduce;
  Behind behind = Behind::Stream;  ///< how the rank's call that the account is of stands behind this one
  std::array<char, 20> host{};     ///< zero-terminated
  std::uint32_t ageMs = 0;         ///< how long ago the rank that waits has said so
};
static_assert(sizeof(CircleHop) == 48 && std::is_trivially_copyable_v<CircleHop>);

/// One rank's account of its call that does not run, of the communicator over which it travels.
struct CircleWord {
  static constexpr std::uint32_t kMagic = 0x31524943;
  static constexpr std::size_t kHops = 4;
  std::uint32_t magic = kMagic;
  std::uint8_t nHops = 0;
  std::uint8_t closed = 0;  ///< 1: the last hop waits for a call that is behind one of the others
  std::uint16_t unused = 0;
  std::uint64_t number = 0;             ///< which call does not run, as CircleHop::number; 0: messages, which have none
  std::array<CircleHop, kHops> hops{};  ///< what that is behind, what the rank it waits for is behind, and so on
};
static_assert(sizeof(CircleWord) == 208 /* < kMaxState */ && std::is_trivially_copyable_v<CircleWord>);

inline std::span<const CircleHop> hopsOf(const CircleWord& word) {
  return std::span(word.hops).first(word.nHops);
}

/// Unset where the bytes are none.
inline std::optional<CircleWord> circleWordFrom(std::span<const std::byte> bytes) {
  CircleWord word;
  if (bytes.size() != sizeof(word)) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof(word));
  if (word.magic != CircleWord::kMagic || word.nHops == 0 || word.nHops > CircleWord::kHops) return std::nullopt;
  const auto hops = hopsOf(word);
  const bool known = std::all_of(hops.begin(), hops.end(), [](const CircleHop& hop) {
    return hop.function <= ApiFunc::Scatter && hop.behind <= Behind::Waiting && hop.host.back() == 0;
  });
  return known ? std::optional(word) : std::nullopt;
}

/// The latest word of each rank. Any thread; nothing waits.
class CircleBoard {
 public:
  using Time = SteadyClock::time_point;
  struct Heard {
    CircleWord word;
    Time at{};
  };

  /// Takes what another rank says of such calls, and only that.
  bool hear(int rank, std::span<const std::byte> bytes) {
    const std::optional<CircleWord> word = circleWordFrom(bytes);
    if (!word) return false;
    const std::lock_guard lock(mutex_);
    heard_[rank] = {*word, SteadyClock::now()};
    return true;
  }
  /// What was heard since `when`.
  std::map<int, Heard> since(Time when) const {
    std::map<int, Heard> fresh;
    const std::lock_guard lock(mutex_);
    for (const auto& [rank, heard] : heard_) {
      if (heard.at >= when) fresh.emplace(rank, heard);
    }
    return fresh;
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, Heard> heard_;
};

}  // namespace tutti::comm
