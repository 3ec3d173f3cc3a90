// Whether what was sent on a TCP socket is acknowledged, and how it looks when it no longer will be.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace tutti::net::tcp {

/// What the system says of the sending half of a socket (TCP_INFO).
struct AckSample {
  std::uint64_t acked = 0;     ///< bytes, since the connection began
  std::uint32_t unacked = 0;   ///< segments under way
  std::uint32_t window = 0;    ///< bytes that the peer has room for
  std::uint32_t heard = 0;     ///< segments of any kind that have come from the peer
  std::uint32_t attempts = 0;  ///< times that the oldest segment was sent again
  std::uint32_t longest = 0;   ///< bytes of content of a segment
  std::uint32_t unsent = 0;    ///< bytes that have not gone for the first time
  bool nothingUnderWay() const { return unacked == 0 && unsent == 0; }
};

/// Nothing where the system does not say.
std::optional<AckSample> sampleAcks(int fd);

/// Follows one socket. A peer that has no room is none of its business: it may be busy for as long as it likes. (That
/// is why TCP_USER_TIMEOUT, which ends such connections as well, will not do.) What a host has acknowledged by the time
/// it runs out of room is acknowledged. Used by one thread.
class TcpAckMonitor {
 public:
  enum class Verdict : std::uint8_t {
    Delivered,  ///< all was acknowledged, or the peer has no room
    UnderWay,
    Silent,     ///< nothing was acknowledged, nor has anything been heard, for longer than the patience
    Swallowed,  ///< nothing was acknowledged, but short segments come and go
  };
  Verdict judge(const AckSample& sample, SteadyClock::time_point now, milliseconds patience);

 private:
  bool waits_ = false;
  std::uint64_t acked_ = 0;
  std::uint32_t heard_ = 0;
  SteadyClock::time_point since_{};  ///< when what is under way was first seen to be
  SteadyClock::time_point heardAt_{};
};

}  // namespace tutti::net::tcp
