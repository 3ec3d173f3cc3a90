// Where log lines go: the file of NCCL_DEBUG_FILE, or standard output.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"

namespace tutti {

/// Takes finished lines. A line that cannot be written is dropped: logging never ends the process, and waits for a
/// reader of a debug file that is a FIFO or a terminal only briefly. Not thread-safe: the log's lock guards it.
class LogOutput {
 public:
  /// From now on lines go to `path`, made or emptied; "" or a path that cannot be opened: to standard output.
  void open(const std::string& path);
  void close();
  void write(std::string_view line);
  /// What went wrong since the last call, as a sentence for the user; empty where nothing did. A debug file that cannot
  /// be written is told once until it can be again.
  std::string takeTrouble();

 private:
  std::string path_;
  Fd file_;
  bool failing_ = false;  ///< the last line was dropped
  std::string trouble_;
};

}  // namespace tutti
