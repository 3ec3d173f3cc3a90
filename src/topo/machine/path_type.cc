#include "topo/machine/path_type.h"

#include <array>
#include <cstddef>

namespace tutti::topo {

namespace {

constexpr std::array<const char*, 12> kNames = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

}  // namespace

const char* pathTypeName(PathType type) {
  return kNames[static_cast<std::size_t>(type)];
}

std::optional<PathType> parsePathType(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<PathType>(i);
  }
  return std::nullopt;
}

}  // namespace tutti::topo
