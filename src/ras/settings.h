// What the user may choose about reports on the job, as plain values.
#pragma once

#include <string>

namespace tutti::ras {

/// Filled from the parameters; see docs/env.md.
struct ProcessSettings {
  bool enabled = true;         ///< NCCL_RAS_ENABLE
  std::string clientAddress;   ///< NCCL_RAS_ADDR
  double timeoutFactor = 1;    ///< NCCL_RAS_TIMEOUT_FACTOR
  std::string interfaceNames;  ///< as the bootstrap has it, like the next two
  std::string family;
  std::string commId;
};

/// How many times longer all timers are than usual: a decimal number above 0; 1, and an INFO line, where the text is
/// none.
double timeoutFactorOf(const std::string& text);

}  // namespace tutti::ras
