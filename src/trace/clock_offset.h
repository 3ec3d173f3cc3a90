// How far the clock of another host is from ours.
#pragma once

#include <cstdint>

#include "base/ranks/control_channel.h"
#include "base/status.h"

namespace tutti::trace {

/// The other clock = ours + `offset`, within `error`. In nanoseconds.
struct ClockOffset {
  std::int64_t offset = 0;
  std::uint64_t error = 0;
};

/// What one question and its answer tell: asked and heard by our clock, answered in between by the other one.
ClockOffset offsetOf(std::uint64_t asked, std::uint64_t answered, std::uint64_t heard);

/// Asks `peer` several times, and keeps what its quickest answer tells; the peer must call answerClock() meanwhile.
/// Errors: the channel's.
Result<ClockOffset> askClock(ControlChannel& channel, int peer);
Status answerClock(ControlChannel& channel, int peer);

}  // namespace tutti::trace
