// A target of libFuzzer (fuzz_target.cc).
#include "drive.h"

namespace tutti::fuzz {

std::string driveTarget(std::string_view text) {
  return driveGraphs(text);
}

}  // namespace tutti::fuzz
