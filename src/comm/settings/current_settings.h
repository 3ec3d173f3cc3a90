// The settings of the process as they are now, read again where that may make a difference.
#pragma once

namespace tutti {
struct Params;
}

namespace tutti::comm {

struct CommSettings;

/// Reads the process's settings if nobody has; what they say in the log comes now. Any thread.
void readCommSettings();

/// The process's settings with those read again that may change between communicators, or that plugins have set
/// (SetByPlugin). Any thread.
Params currentSettings();
/// What communicators need of them. Any thread.
CommSettings currentCommSettings();

}  // namespace tutti::comm
