// What a communicator takes of its settings for the whole of its life.
#pragma once

#include "comm/state/communicator.h"

namespace tutti::comm {

CommOptions optionsFrom(const CommSettings& settings);

/// Reads the settings again where a plugin has set some: one that `comm` has just begun is among those, perhaps.
/// Belongs between two stages of its init.
void obeyPlugins(ncclComm& comm);

}  // namespace tutti::comm
