// What both ends of a link tell each other over the control channel while they connect.
#pragma once

#include <vector>

#include "base/ranks/control_channel.h"
#include "base/status.h"
#include "comm/connect/attempt.h"

namespace tutti::comm {

/// Messages carry the phase, the kind and which of the two sides sent them in their tag, so that the links between one
/// pair of ranks do not mix; order within a tag is the order of the tries, hence equal on both sides.
class LinkExchange {
 public:
  /// `control` must outlive the exchange.
  explicit LinkExchange(ControlChannel& control) : control_(control) {}

  /// Whether the peer's message of that phase is here: receiving it does not wait then.
  bool arrived(const LinkAttempt& attempt, LinkPhase phase) const;
  Status sendHandles(const LinkAttempt& attempt) const;
  /// One for each channel; none: the peer could not open its end, or we could not. Errors: ncclInternalError where the
  /// peer has other channels; what the control channel says.
  Result<std::vector<transport::ConnectHandle>> recvHandles(const LinkAttempt& attempt) const;
  /// Whether our side is good at the end of a phase …
  Status sendWord(const LinkAttempt& attempt, LinkPhase phase) const;
  /// … and whether the peer's is.
  Result<bool> recvWord(const LinkAttempt& attempt, LinkPhase phase) const;

 private:
  ControlChannel& control_;
};

}  // namespace tutti::comm
