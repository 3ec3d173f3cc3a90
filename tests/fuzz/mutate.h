// Changes XML files in ways that leave them well formed, so that what comes behind the parser sees broken content too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::fuzz {

/// `text` with one to four changes: elements removed, repeated, moved or renamed, attributes removed or given values
/// from elsewhere in the file or from a list of awkward ones; now and then single bytes. The same for the same `seed`.
/// Text that is no XML only has bytes changed.
std::string mutateXml(std::string_view text, std::uint64_t seed);

}  // namespace tutti::fuzz
