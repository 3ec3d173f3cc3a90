// What fuzz_target.cc and the tests need of every target.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"

namespace tutti::fuzz {

/// What the fuzzer that is being built does with an input. Returns what went wrong, "" if nothing did.
std::string driveTarget(std::string_view text);

/// Lets the library say nothing: inputs are refused by the thousand.
inline void silenceLog() {
  setLogSink([](void*, bool, std::string_view) {}, nullptr);
}

}  // namespace tutti::fuzz
