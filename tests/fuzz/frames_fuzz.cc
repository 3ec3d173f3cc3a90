// A target of libFuzzer (fuzz_target.cc).
#include "ras_drive.h"

namespace tutti::fuzz {

std::string driveTarget(std::string_view text) {
  return driveFrames(text);
}

}  // namespace tutti::fuzz
