// Tests fail when the library complains unexpectedly.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::test {

/// Allows (and requires) one WARN or ERROR line that contains `part` in the running test: the test fails if it never
/// comes. May be called before or after the line. Any thread.
void expectLog(std::string_view part);

/// Allows any number of WARN or ERROR lines that contain `part` in the running test, none included: for lines whose
/// number depends on timing.
void allowLog(std::string_view part);

/// All lines seen since the running test began, oldest first, INFO included where NCCL_DEBUG enables them.
std::vector<std::string> capturedLog();

/// Text of capturedLog() in one piece.
std::string capturedText();

/// How often `part` stands there.
inline std::size_t countOf(const std::string& log, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = log.find(part); at != std::string::npos; at = log.find(part, at + 1)) ++count;
  return count;
}

}  // namespace tutti::test
