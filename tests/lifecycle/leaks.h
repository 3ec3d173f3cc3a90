// What a process holds: device memory and descriptors.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace lifecycle {

struct Holdings {
  std::vector<std::size_t> freeBytes;  ///< by device
  std::size_t descriptors = 0;
  bool operator==(const Holdings&) const = default;
};

/// Changes the current device.
Holdings holdings(int firstDevice, int lastDevice);
std::string describe(const Holdings& holdings);

/// Waits up to ten seconds, since threads that end take a moment, until the process holds what it did. Returns an empty
/// text, or what the difference is. `sweep`, called now and then: makes the library free what graphs have left behind,
/// of whose end the driver may tell late.
std::string leaked(const Holdings& before, int firstDevice, int lastDevice, const std::function<void()>& sweep);

}  // namespace lifecycle
