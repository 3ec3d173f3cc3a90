// Standard output, where a library may meet anything: an application's buffer, a pipe that nobody reads, none at all.
#pragma once

#include <string_view>

namespace tutti {

/// Writes behind what the application has printed there, and waits only briefly for a reader. Nothing where standard
/// output was closed when the library was loaded. No signal. Any thread.
void writeToStdout(std::string_view text);

}  // namespace tutti
