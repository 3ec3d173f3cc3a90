#include "change_bytes.h"

#include <cstddef>
#include <random>

namespace tutti::fuzz {

std::string changeBytes(std::string_view text, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(n == 0 ? 0 : random() % n); };
  std::string changed(text);
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(changed.size());
    const std::size_t kind = below(changed.empty() ? 1 : 5);
    if (kind == 0) changed.insert(at, 1, static_cast<char>(below(256)));
    if (kind == 1) changed.erase(at, 1 + below(16));
    if (kind == 2) changed[at] = static_cast<char>(below(256));
    if (kind == 3) changed.resize(at);
    if (kind == 4) changed.insert(below(changed.size()), changed.substr(at, 1 + below(16)));
  }
  return changed;
}

}  // namespace tutti::fuzz
