// Which end of a connection one has, or wants.
#pragma once

#include <cstdint>

namespace tutti::device {

enum class Direction : std::uint8_t { Send, Recv };

}  // namespace tutti::device
