// printf, malloc, assert and clocks of device code.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "softgpu/ptx/support/functions.h"

namespace {

template <class T>
T wordAt(const void* block, std::size_t offset) {
  T word;
  std::memcpy(&word, static_cast<const char*>(block) + offset, sizeof word);
  return word;
}

/// Arguments of printf, one after the other, each aligned to its size: 4 bytes or 8.
class Arguments {
 public:
  explicit Arguments(const void* block) : block_(block) {}
  std::uint64_t take(std::size_t bytes) {
    offset_ = (offset_ + bytes - 1) / bytes * bytes;
    const std::uint64_t word =
        bytes == 8 ? wordAt<std::uint64_t>(block_, offset_) : wordAt<std::uint32_t>(block_, offset_);
    offset_ += bytes;
    ++count_;
    return word;
  }
  int count() const { return count_; }

 private:
  const void* block_;
  std::size_t offset_ = 0;
  int count_ = 0;
};

template <class T>
void append(std::string& out, const std::string& format, T value) {
  char text[512];
  // The format is what a conversion of the kernel's own says, one at a time.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(text, sizeof text, format.c_str(), value);
#pragma GCC diagnostic pop
  if (length > 0) out.append(text, std::min(static_cast<std::size_t>(length), sizeof text - 1));
}

/// One conversion, from its `%` on.
void convert(std::string& out, std::string conversion, Arguments& arguments) {
  // The device's long is 8 bytes, as this one's.
  const bool wide = conversion.find_first_of("ljzt") != std::string::npos;
  for (std::size_t star = 0; (star = conversion.find('*')) != std::string::npos;) {
    conversion.replace(star, 1, std::to_string(static_cast<std::int32_t>(arguments.take(4))));
  }
  switch (const char kind = conversion.back()) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'c': {
      const std::uint64_t word = arguments.take(wide ? 8 : 4);
      if (wide && kind != 'c') return append(out, conversion, word);
      return append(out, conversion, static_cast<std::uint32_t>(word));
    }
    case 's':
      return append(out, conversion, reinterpret_cast<const char*>(arguments.take(8)));
    case 'p':
      return append(out, conversion, reinterpret_cast<const void*>(arguments.take(8)));
    default:
      return append(out, conversion, __builtin_bit_cast(double, arguments.take(8)));
  }
}

std::string printed(std::string_view format, Arguments& arguments) {
  std::string out;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    if (format.substr(at).starts_with("%%")) {
      out += '%';
      at += 2;
      continue;
    }
    const std::size_t end = format.find_first_of("diouxXcspfFeEgGaA", at);
    if (end == std::string_view::npos) {
      out += format.substr(at);
      break;
    }
    convert(out, std::string(format.substr(at, end + 1 - at)), arguments);
    at = end + 1;
  }
  return out;
}

}  // namespace

extern "C" {
std::uint64_t ptx_timer() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

/// A thread's stack has 64 KiB; what lies further away than that is none of its words.
bool ptx_on_stack(std::uint64_t address) {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  constexpr std::uint64_t kStack = std::uint64_t{64} << 10;
  return address - here < kStack;
}

void ptx_vprintf(const void* arguments, void* results) {
  const char* format = wordAt<const char*>(arguments, 0);
  Arguments given(wordAt<const void*>(arguments, 8));
  const std::string text = printed(format, given);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const int count = given.count();
  std::memcpy(results, &count, sizeof count);
}

void ptx_malloc(const void* arguments, void* results) {
  void* memory = std::malloc(wordAt<std::size_t>(arguments, 0));
  std::memcpy(results, &memory, sizeof memory);
}

void ptx_free(const void* arguments, void*) {
  std::free(wordAt<void*>(arguments, 0));
}

const char* ptx_assert_text(const void* arguments) {
  static thread_local std::string text;
  text = "assertion '" + std::string(wordAt<const char*>(arguments, 0)) + "' failed in " +
         wordAt<const char*>(arguments, 24) + ", " + wordAt<const char*>(arguments, 8) + ":" +
         std::to_string(wordAt<std::uint32_t>(arguments, 16));
  return text.c_str();
}
}
