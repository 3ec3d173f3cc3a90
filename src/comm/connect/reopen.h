// Opens again what ChannelSet::close() has closed.
#pragma once

#include "base/status.h"

namespace tutti::comm {

class ChannelSet;
struct ConnectContext;

/// All connections that `channels` had, each by the transport that it had. Collective among the ranks that were joined.
/// Errors: those of reconnectLinks().
Status reopenAll(const ConnectContext& context, ChannelSet& channels);

}  // namespace tutti::comm
