// A target of libFuzzer (fuzz_target.cc).
#include "drive.h"

namespace tutti::fuzz {

std::string driveTarget(std::string_view text) {
  // That graphs hold what they say is a matter of the tests; here the search only has to end.
  driveSearch(text);
  return driveTopology(text);
}

}  // namespace tutti::fuzz
