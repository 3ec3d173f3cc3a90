// What a process has open.
#pragma once

#include <cstddef>
#include <filesystem>

namespace tutti::test {

/// Descriptors of this process, with the one that counting takes.
inline std::size_t openDescriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace tutti::test
