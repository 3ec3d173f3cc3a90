// What hwloc may be given of a file in its XML. hwloc trusts such files: it reads through null pointers where an object
// lacks a set, and recurses as deep as objects stand in each other.
#pragma once

#include <optional>
#include <string>

namespace tutti::topo {

/// The objects of the file and what is known of them, nothing else (distances, memory attributes, other programs'
/// data), once all of it is as hwloc writes it: types, places and sets of processors and nodes. Empty for any other
/// text; `why` says what is wrong then. Takes time by the size of the text.
std::optional<std::string> checkedHwlocXml(const std::string& text, std::string& why);

}  // namespace tutti::topo
