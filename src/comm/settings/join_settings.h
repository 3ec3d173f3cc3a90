// What joining takes of a communicator's settings, for whoever needs nothing else of them.
#pragma once

namespace tutti::bootstrap {
struct BootstrapSettings;
}

namespace tutti::comm {

struct CommSettings;

/// Borrowed from `settings`.
const bootstrap::BootstrapSettings& joinSettings(const CommSettings& settings);

}  // namespace tutti::comm
