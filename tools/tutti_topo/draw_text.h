// How much room texts and lines take in a picture.
#pragma once

#include <string>
#include <vector>

namespace tutti::tool {

/// Stroke width of a link or channel of so many GB/s.
double strokeWidth(double gigabytes);

/// Upper bound of a text's width in pixels, for common sans-serif fonts.
double textWidth(const std::string& text, double size, bool bold = false);

/// The first of `candidates` that fits into `width`; the last one, shortened with dots, if none does.
std::string fittingText(const std::vector<std::string>& candidates, double width, double size, bool bold = false);

/// `text` for a terminal or a document: control characters and what is not UTF-8 become '?'.
std::string cleanText(const std::string& text);

}  // namespace tutti::tool
