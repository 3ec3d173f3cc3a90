// Keys of roots: from an id's secret, or from TUTTI_COMM_KEY.
#pragma once

#include <string>

#include "base/status.h"
#include "bootstrap/link/crypto.h"

namespace tutti::bootstrap {

struct UniqueId;

/// The key that ranks and root prove to each other; `commKey` counts only for ids without a secret.
Key rootKey(const UniqueId& id, const std::string& commKey);

/// A key that people think up can be guessed by whoever overhears a handshake: it has to have 16 characters, of which 8
/// differ, or none at all. Errors: ncclInvalidUsage, with what to do.
Status checkCommKey(const std::string& commKey);

}  // namespace tutti::bootstrap
