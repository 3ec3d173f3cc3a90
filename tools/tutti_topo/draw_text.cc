#include "tutti_topo/draw_text.h"

#include <algorithm>
#include <cmath>

namespace tutti::tool {
namespace {

/// Bytes of the letter that begins at `at`, 0 if none does. Forms longer than need be and surrogates count as none.
std::size_t letterBytes(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xc2 && first < 0xe0   ? 2
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xf0 && first < 0xf5 ? 4
                                                            : 0;
  unsigned letter = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
    letter = letter << 6 | (byte(at + i) & 0x3f);
  }
  const bool tooLong = (bytes == 3 && letter < 0x800) || (bytes == 4 && letter < 0x10000);
  const bool noLetter = letter > 0x10ffff || (letter >= 0xd800 && letter < 0xe000) || (letter & 0xfffe) == 0xfffe ||
                        (letter >= 0x80 && letter < 0xa0);
  return tooLong || noLetter ? 0 : bytes;
}

}  // namespace

double strokeWidth(double gigabytes) {
  return std::clamp(0.65 * std::sqrt(std::max(gigabytes, 0.0)), 1.2, 13.0);
}

double textWidth(const std::string& text, double size, bool bold) {
  double sum = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) continue;  // a later byte of the same letter
    const bool narrow = c == 'i' || c == 'l' || c == ' ' || c == '.' || c == ':' || c == ',' || c == 'I' || c == 't';
    sum += narrow ? 0.40 : (c >= 'A' && c <= 'Z') || c == 'm' || c == 'w' || c == '%' ? 0.78 : 0.635;
  }
  return sum * size * (bold ? 1.10 : 1);
}

std::string fittingText(const std::vector<std::string>& candidates, double width, double size, bool bold) {
  for (const std::string& text : candidates) {
    if (textWidth(text, size, bold) <= width) return text;
  }
  if (candidates.empty()) return {};
  std::string text = candidates.back();
  while (!text.empty() && textWidth(text + "…", size, bold) > width) {
    do {
      text.pop_back();
    } while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80);
  }
  return text.empty() ? text : text + "…";
}

std::string cleanText(const std::string& text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = letterBytes(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (bytes == 0 || byte < 0x20 || byte == 0x7f) {
      clean += '?';
      ++i;
      continue;
    }
    clean.append(text, i, bytes);
    i += bytes;
  }
  return clean;
}

}  // namespace tutti::tool
