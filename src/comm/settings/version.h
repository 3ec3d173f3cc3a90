// What this library calls itself.
#pragma once

#include <string>

namespace tutti::comm {

/// "2.30.7".
std::string versionNumber();

/// "NCCL version 2.30.7+cuda13.0".
std::string versionText();

}  // namespace tutti::comm
