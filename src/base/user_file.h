// Files that a setting names, read without waiting for anybody, whatever the path names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

/// Why a file could not be read.
enum class FileTrouble : std::uint8_t {
  None,
  Missing,     ///< there is nothing of that name
  NotAFile,    ///< a directory, a FIFO, a device or a socket
  TooLarge,    ///< longer than the reader allows
  Unreadable,  ///< the system refuses
};

/// A file's text, or why there is none.
struct UserFile {
  FileTrouble trouble = FileTrouble::None;
  std::string text;
  /// What is wrong and what to do, without the path: "it is a directory; name a regular file".
  std::string why;

  bool ok() const { return trouble == FileTrouble::None; }
};

/// Reads the regular file `path`, of at most `most` bytes. Everything else is refused unread: it may have no end, or
/// make its reader wait. Logs nothing, and throws nothing but std::bad_alloc. Any thread.
UserFile readUserFile(const std::string& path, std::size_t most);

/// What `path` is where that is no regular file: "a directory", "a FIFO" and the like. Empty for a regular file, and
/// where the system does not tell (nothing there, no right to look). Any thread.
std::string_view kindOfNoFile(const std::string& path);

}  // namespace tutti
