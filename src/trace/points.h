// The points that most of the library needs: things that take time, moments, and for which communicator a thread works.
// Numbers of communicators are those of addComm(); 0: none, or no trace was on when it was made.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "trace/format.h"
#include "trace/on.h"

namespace tutti::trace {

/// Whether what a Span tells may take long: then its beginning is written as well, so that a trace that ends meanwhile
/// shows it.
enum class Takes : std::uint8_t { Short, Long };

/// Something that takes time, as long as it lives. `what` lasts for ever; null: none.
class Span {
 public:
  Span(Kind kind, std::uint16_t comm, const char* what, Takes takes = Takes::Short) {
    if (on()) begin(kind, comm, what, takes);
  }
  /// The same with a text of its own, which `made()` gives where it is written.
  template <class Made>
  Span(Kind kind, std::uint16_t comm, Takes takes, Made&& made) {
    if (on()) beginText(kind, comm, takes, made());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    if (record_.begin != 0) end();
  }
  /// Whether it will be written: then record() may be filled in.
  bool written() const { return record_.begin != 0; }
  Record& record() { return record_; }

 private:
  void begin(Kind kind, std::uint16_t comm, const char* what, Takes takes);
  void beginText(Kind kind, std::uint16_t comm, Takes takes, std::string_view what);
  void beginWith(Kind kind, std::uint16_t comm, std::uint32_t text, Takes takes);
  void end();

  Record record_{};
};

/// A moment. `what` lasts for ever; null: none.
void mark(Kind kind, std::uint16_t comm, const char* what, std::uint64_t a = 0);
/// What has gone on since then.
void markSince(SteadyClock::time_point begin, Kind kind, std::uint16_t comm, const char* what);
/// A moment with a text of its own.
void markText(Kind kind, std::uint16_t comm, std::string_view what, std::uint64_t a = 0);

/// For structs of small numbers in a record's word.
template <class Words>
std::uint64_t wordOf(const Words& words) {
  return std::bit_cast<std::uint64_t>(words);
}

/// As long as it lives, connections that the calling thread opens are of this communicator.
class Within {
 public:
  explicit Within(std::uint16_t comm);
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  ~Within();

 private:
  std::uint16_t before_;
};

/// Requests of one connection over a network, oldest first, at most `kMost` under way. Used by one thread at a time.
class Requests {
 public:
  Requests(Kind kind, StepWords words);

  /// The network has refused the next request.
  void refused() {
    if (on() && refused_ == 0) refused_ = now();
  }
  /// It has taken request `step`.
  void posted(std::uint64_t step) {
    if (on()) notePosted(step);
  }
  /// Request `step` has ended, having moved `bytes`.
  void ended(std::uint64_t step, std::uint64_t bytes) {
    if (on()) noteEnded(step, bytes);
  }
  /// Step `step` has come by a request that was for any.
  void arrived(std::uint64_t step, std::uint64_t bytes) {
    if (!on()) return;
    notePosted(step);
    noteEnded(step, bytes);
  }

 private:
  static constexpr std::size_t kMost = 64;
  struct Under {
    std::uint64_t begin = 0;
    std::uint64_t refused = 0;
  };
  void notePosted(std::uint64_t step);
  void noteEnded(std::uint64_t step, std::uint64_t bytes);

  Kind kind_;
  StepWords words_;
  std::uint16_t comm_;
  std::uint64_t refused_ = 0;
  std::array<Under, kMost> under_{};
};

}  // namespace tutti::trace
