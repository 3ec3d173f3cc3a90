#include "topo/draw_text.h"

#include <algorithm>
#include <cmath>

namespace tutti {

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

}  // namespace tutti
