// One link on its way: which transport it tries, and how far it has come.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/connect/link_types.h"
#include "transport/common/transport.h"

namespace tutti::comm {

/// What one link waits for: the peer's message of that name. Ours goes out as the phase begins.
///   Handles: how to reach the peer's buffers   -> connects, if that takes the peer's help as well: Joining
///   Joining: no message; until ready           -> writes the probe
///   Written: the peer is ready, too, and has written its probe -> Meeting
///   Meeting: no message; until both have met   -> checks the probe
///   Verdict: the peer has checked              -> Connected, or Handles again with the next transport
/// A sender whose transport calls first (transport::Transport::callsFirst) gives its handles when it has.
enum class LinkPhase : int { Handles, Joining, Written, Meeting, Verdict, Connected };

/// `good` turns false on either side's failure.
struct LinkAttempt {
  LinkRequest request;
  std::size_t transport = 0;  ///< its number in the list
  bool onlyThat = false;      ///< no other is tried
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints;
  bool good = true;
  bool owesHandles = false;       ///< ours have not gone out
  std::optional<bool> peersWord;  ///< of the phase that comes next, where it came while we were joining or meeting
  Status error;                   ///< ours, where it was ours
  std::string errorText;
  std::string reasons;      ///< why earlier transports are out
  bool tried = false;       ///< one of these had been opened …
  bool failedHere = false;  ///< … and failed on our side
  LinkPhase phase = LinkPhase::Handles;
  Deadline until = Deadline::never();  ///< for the message of this phase

  bool sends() const { return request.direction == device::Direction::Send; }
  /// Where `status` is an error, it is our side's failure.
  void noteError(Status status);
  void noteReason(std::string_view transportName, std::string_view reason);
  /// The same wish, to be tried with the next transport; `name` is that of the one that failed.
  LinkAttempt next(std::string_view name) &&;

  Status connectAll(std::span<const transport::ConnectHandle> handles);
  /// Every endpoint is asked: each may have something to do.
  Result<bool> allReady();
  bool allCall() const;
  /// As allReady().
  Result<bool> allMet();
  Status writeProbes();
  Status checkProbes();
};

}  // namespace tutti::comm
