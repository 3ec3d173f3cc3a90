// A place in a source file, as log lines show it.
#pragma once

#include <cstdint>
#include <source_location>

namespace tutti {

/// Of our own sources, or what somebody else's message says of itself. The texts are borrowed.
struct SourcePlace {
  const char* file = "";
  const char* function = "";  ///< as the compiler spells it; "": not known, lines name the file alone
  std::uint32_t line = 0;

  SourcePlace() = default;
  SourcePlace(const char* f, std::uint32_t l, const char* name) : file(f), function(name), line(l) {}
  SourcePlace(const std::source_location& where)  // NOLINT(google-explicit-constructor): is one
      : file(where.file_name()), function(where.function_name()), line(where.line()) {}
};

}  // namespace tutti
