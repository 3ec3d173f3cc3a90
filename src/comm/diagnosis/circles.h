// Communicators that ranks use in different order, so that their operations wait for each other: found from what each
// rank knows of its own communicators, and what others say of theirs. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "comm/diagnosis/circle_words.h"

namespace tutti::comm {

/// A rank, for people.
struct NamedRank {
  int rank = -1;
  int device = 0;
  int pid = 0;
  std::string host;
};

/// How this rank stands in one of its communicators.
struct CommStanding {
  enum class Place : std::uint8_t {
    Unknown,
    Absent,   ///< no call of it is under way; `number` is that of the next one
    Blocked,  ///< its call was launched, and the device has not begun with it
    Waits,    ///< the device has begun with its call, or the call waits on the host to be connected
  };
  /// What was said by others, and when.
  using Words = std::map<int, CircleBoard::Heard>;

  std::uint64_t comm = 0;
  NamedRank self;
  Place place = Place::Unknown;
  bool onHost = false;    ///< Waits: inside the call
  bool steady = false;    ///< it has stood so for kCircleSteady, and nothing moves; of an absent rank: others wait
  bool messages = false;  ///< the call is of sends and receives alone
  std::uint64_t number = 0;
  ApiFunc function = ApiFunc::AllReduce;
  std::uint64_t order = 0;    ///< of its launch, among those of the process
  std::uintptr_t stream = 0;  ///< of its launch
  std::uint64_t thread = 0;   ///< that made its last call; 0: not known
  std::vector<int> waitsFor;  ///< ranks, as far as counters tell
  Words words;                ///< fresh ones
  std::function<NamedRank(int)> describe;
};

/// What is said counts for so long …
inline constexpr milliseconds kCircleFresh{3000};
/// … and is said once it has been so for that long. So what is said by several ranks has been the case at one moment.
inline constexpr milliseconds kCircleSteady{3000};

/// What a call of this rank waits for, from communicator to communicator.
struct CirclePath {
  std::vector<CircleHop> hops;  ///< of a call that waits, the first one is that call itself
  bool closed = false;          ///< they wait in a circle
};

/// Follows the call of `all[which]`, which waits or does not run. Empty hops: it is behind no other communicator's
/// call, or all that it waits for is. A circle is preferred to all else.
CirclePath followCircle(std::span<const CommStanding> all, std::size_t which, SteadyClock::time_point now);

/// What this rank says over `all[which]` to others; unset: nothing.
std::optional<CircleWord> circleWord(std::span<const CommStanding> all, std::size_t which, SteadyClock::time_point now);

/// Whether the two say the same, however old it is.
bool sameCircleWord(const CircleWord& a, const CircleWord& b);

/// A sentence or two that name the circle and the remedy; of hops that are none: what the call is behind, a sentence
/// without its full stop. Empty where the path says nothing. `room`: bytes that it should not exceed by much.
std::string describeCircle(const CommStanding& own, const CirclePath& path, std::size_t room);

}  // namespace tutti::comm
