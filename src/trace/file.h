// The file of a trace as the process that writes it sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "trace/format.h"

namespace tutti::trace {

/// Who writes, for the header.
struct Writer {
  std::string host;
  std::uint64_t hostHash = 0;
  std::uint32_t pid = 0;
  std::string library;
};

/// A file of fixed size that is mapped as long as this lives. What was written to it stays however the process ends.
class TraceFile {
 public:
  /// Makes `path` anew, of `bytes`, which are taken from the file system at once, for a full one could not be told
  /// later. Where it cannot: null, and `why` says the cause and the remedy. Refuses a file that another process writes.
  static std::unique_ptr<TraceFile> create(const std::string& path, std::uint64_t bytes, const Writer& writer,
                                           std::string& why);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Writes a record; `sequence` is filled in. Lock-free. Any thread. A thread that is stopped in the middle of this
  /// while others fill the whole ring may spoil one record.
  void write(const Record& record);
  /// Adds a note; `payload` is what follows its head. Its place plus 1; 0: there is no room. Any thread.
  std::uint32_t note(NoteType type, std::span<const std::byte> payload);
  std::uint32_t text(std::string_view text);
  /// The process ends in order.
  void close(std::uint64_t when);
  /// In the child of a fork: lets go of the memory, which the parent keeps.
  void forget();

 private:
  TraceFile(Fd file, std::byte* memory, std::uint64_t bytes);
  FileHeader& header() { return *reinterpret_cast<FileHeader*>(memory_); }

  Fd file_;  ///< its lock tells other processes that somebody writes
  std::byte* memory_;
  std::uint64_t bytes_;
  std::uint64_t* ring_;
  std::uint64_t records_;
  std::mutex notes_;
};

}  // namespace tutti::trace
