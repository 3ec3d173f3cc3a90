#include "archive.h"

#include <cstddef>
#include <stdexcept>

namespace tutti::fuzz {

namespace {

// A header of ustar: fields of characters at fixed places, filled up with zeros.
constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameAt = 0, kNameLength = 100;
constexpr std::size_t kSizeAt = 124, kSizeLength = 12;
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kMagicAt = 257;

[[noreturn]] void refuse(std::size_t at, const std::string& what) {
  throw std::runtime_error("archive of inputs, byte " + std::to_string(at) + ": " + what);
}

std::string field(std::string_view header, std::size_t at, std::size_t length) {
  const std::string_view text = header.substr(at, length);
  return std::string(text.substr(0, text.find('\0')));
}

std::size_t sizeIn(std::string_view header, std::size_t at) {
  const std::string digits = field(header, kSizeAt, kSizeLength);
  if (digits.empty() || digits.find_first_not_of("01234567 ") != std::string::npos) refuse(at, "no size");
  return std::stoull(digits, nullptr, 8);
}

}  // namespace

std::vector<Input> readArchive(std::string_view archive) {
  std::vector<Input> inputs;
  std::size_t at = 0;
  while (at + kBlock <= archive.size()) {
    const std::string_view header = archive.substr(at, kBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) return inputs;  // the end is a block of zeros
    if (header.substr(kMagicAt, 5) != "ustar") refuse(at, "no header of ustar");
    if (header[kTypeAt] != '0') refuse(at, "not a file");
    const std::size_t size = sizeIn(header, at);
    const std::size_t blocks = (size + kBlock - 1) / kBlock;
    if (size > archive.size() - at - kBlock) refuse(at, "the file is cut off");
    inputs.push_back({field(header, kNameAt, kNameLength), std::string(archive.substr(at + kBlock, size))});
    at += kBlock + blocks * kBlock;
  }
  refuse(at, "no end: it is cut off");
}

}  // namespace tutti::fuzz
