// Why a collective cannot be carried out: errors that say what was weighed, and what would be possible.
#pragma once

#include <string>

#include "base/status.h"
#include "comm/tuning/choice.h"

namespace tutti::comm {

/// Nothing is possible: of what the call selects, of what the settings allow, or at all; see chooseCollective().
Status nothingLeft(const Tuning& tuning, const Request& request);
/// A tuner plugin has forbidden all that would be. The same codes.
Status forbidden(const Tuning& tuning, const Request& request, const std::string& plugin);

}  // namespace tutti::comm
