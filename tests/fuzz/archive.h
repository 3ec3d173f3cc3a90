// Reads the archives of the corpora (pack.py), in memory: tests leave no files behind and may run side by side.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::fuzz {

struct Input {
  std::string name;
  std::string text;
};

/// The files of an uncompressed ustar archive, in its order. Throws std::runtime_error, which says what is wrong and
/// where, if anything in it is not a file, or if it is cut off.
std::vector<Input> readArchive(std::string_view archive);

}  // namespace tutti::fuzz
