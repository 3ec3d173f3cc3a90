#include "base/log_output.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/bounded_write.h"
#include "base/standard_output.h"

namespace tutti {

namespace {

/// For whoever reads a debug file that is no file.
constexpr std::chrono::milliseconds kFilePatience{1000};

}  // namespace

void LogOutput::open(const std::string& path) {
  close();
  if (path.empty()) return;
  path_ = path;
  file_ = openForWriting(path, true);
  if (file_.valid()) return;
  trouble_ = "NCCL_DEBUG_FILE=" + path + " cannot be opened: " + whyNotWritten(errno) +
             ". Log lines go to standard output instead";
}

void LogOutput::close() {
  file_.reset();
  failing_ = false;
  trouble_.clear();
}

void LogOutput::write(std::string_view line) {
  if (!file_.valid()) return writeToStdout(line);
  const int error = writeBounded(file_.get(), line, failing_ ? kFilePatience * 0 : kFilePatience);
  if (error != 0 && !failing_) {
    trouble_ = "NCCL_DEBUG_FILE=" + path_ + " cannot be written: " + whyNotWritten(error) +
               ". Log lines are dropped until it can be";
  }
  failing_ = error != 0;
}

std::string LogOutput::takeTrouble() {
  return std::exchange(trouble_, {});
}

}  // namespace tutti
