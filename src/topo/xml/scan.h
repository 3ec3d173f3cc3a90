// A first look at the text of an XML file, before a parser allocates anything for it: is it nested properly, is it
// within the limits, and on which line does each element begin?
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// Lines (1-based) of the start tags, in the order of the text. What is between a tag's name and its end is not looked
/// at but for quotes; comments and `<? ?>` are skipped.
/// Errors: ncclInvalidUsage with `origin`, line and reason.
Result<std::vector<int>> scanXml(std::string_view text, std::string_view origin, const XmlLimits& limits);

/// The line (1-based) of a place in `text`; of its end for a place behind it.
int lineOf(std::string_view text, std::ptrdiff_t offset);

/// `value` for a message: at most 60 characters, what cannot be printed as '?'.
std::string shownText(std::string_view value);

}  // namespace tutti::topo
