// Changes inputs of any kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::fuzz {

/// `text` with one to four changes: bytes put in, left out, repeated elsewhere or given another value, or the end cut
/// off. The same for the same `seed`.
std::string changeBytes(std::string_view text, std::uint64_t seed);

}  // namespace tutti::fuzz
