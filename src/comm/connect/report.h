// What people read about links: which transport each got, which failed, which found none, whose peer never came.
#pragma once

#include "base/clock.h"
#include "base/status.h"
#include "comm/connect/attempt.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

/// The two ranks of a link, as one of them sees it.
struct LinkEnds {
  const topo::PeerInfo& self;
  const topo::PeerInfo& peer;
};

/// How the link came to the transport that it has.
Fallback fallbackOf(const LinkAttempt& attempt, const LinkEnds& ends);
/// The error that no transport is left.
Status noTransport(const LinkAttempt& attempt, const LinkEnds& ends);
/// The error that the transport of that name, by which they were joined before, joins them no more.
Status lostTransport(const LinkAttempt& attempt, const LinkEnds& ends, std::string_view transportName);
/// The error that the peer has not come within `patience`.
Status peerOverdue(const LinkEnds& ends, milliseconds patience);
/// Says at INFO by what each channel of a link goes.
void reportLink(const LinkAttempt& attempt, const LinkEnds& ends);
/// Warns that the transport of that name failed, and that the next one is tried.
void warnOfRetry(const LinkAttempt& attempt, const LinkEnds& ends, std::string_view transportName);

}  // namespace tutti::comm
