#include "trace/points.h"

#include "trace/session.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace tutti::trace {

namespace {

/// Below that a question is not worth a record.
constexpr std::uint64_t kAtOnce = 20'000;
constexpr std::array<std::string_view, 6> kQuestions{"ncclCommGetAsyncError", "ncclCommCount",  "ncclCommCuDevice",
                                                     "ncclCommUserRank",      "ncclGetVersion", "ncclCommMemStats"};

bool isQuestion(std::string_view function) {
  return std::find(kQuestions.begin(), kQuestions.end(), function) != kQuestions.end();
}

/// Those of a communicator's life wait for its peers.
bool mayTakeLong(std::string_view function) {
  return function.starts_with("ncclComm") && !isQuestion(function);
}

}  // namespace

Current& current() {
  thread_local constinit Current own;
  return own;
}

void Call::begin(std::string_view function) {
  if (function == "ncclGroupStart") return;
  function_ = function;
  begin_ = now();
  number_ = nextNumber();
  before_ = current();
  current() = {begin_, number_, 0};
  if (!mayTakeLong(function)) return;
  Record record{};
  record.begin = record.end = begin_;
  record.kind = Kind::Call;
  record.flags = kOpen;
  record.number = number_;
  record.text = staticText(function.data());
  write(record);
}

void Call::end() const {
  Record record{};
  record.begin = begin_;
  record.end = now();
  record.kind = Kind::Call;
  record.comm = current().comm;
  record.number = number_;
  record.a = static_cast<std::uint64_t>(result_);
  current() = before_;
  if (result_ == 0 && record.end - begin_ < kAtOnce && isQuestion(function_)) return;
  record.text = staticText(function_.data());
  write(record);
}

void Span::begin(Kind kind, std::uint16_t comm, const char* what, Takes takes) {
  beginWith(kind, comm, what == nullptr ? 0 : staticText(what), takes);
}

void Span::beginText(Kind kind, std::uint16_t comm, Takes takes, std::string_view what) {
  beginWith(kind, comm, text(what), takes);
}

void Span::beginWith(Kind kind, std::uint16_t comm, std::uint32_t text, Takes takes) {
  record_.kind = kind;
  record_.comm = comm;
  record_.text = text;
  record_.begin = record_.end = now();
  if (takes == Takes::Short) return;
  record_.number = nextNumber();
  record_.flags = kOpen;
  write(record_);
  record_.flags = 0;
}

void Span::end() {
  record_.end = now();
  write(record_);
}

void mark(Kind kind, std::uint16_t comm, const char* what, std::uint64_t a) {
  if (!on()) return;
  Record record{};
  record.kind = kind;
  record.comm = comm;
  record.text = what == nullptr ? 0 : staticText(what);
  record.begin = record.end = now();
  record.a = a;
  write(record);
}

void markSince(SteadyClock::time_point begin, Kind kind, std::uint16_t comm, const char* what) {
  if (!on()) return;
  Record record{};
  record.kind = kind;
  record.comm = comm;
  record.text = staticText(what);
  // Both are CLOCK_MONOTONIC.
  record.begin = static_cast<std::uint64_t>(std::chrono::nanoseconds(begin.time_since_epoch()).count());
  record.end = now();
  write(record);
}

void markText(Kind kind, std::uint16_t comm, std::string_view what, std::uint64_t a) {
  if (!on()) return;
  Record record{};
  record.kind = kind;
  record.comm = comm;
  record.text = text(what);
  record.begin = record.end = now();
  record.a = a;
  write(record);
}

void Requests::notePosted(std::uint64_t step) {
  Under& one = under_[step % kMost];
  one.begin = now();
  one.refused = refused_ == 0 ? 0 : one.begin - refused_;
  refused_ = 0;
}

void Requests::noteEnded(std::uint64_t step, std::uint64_t bytes) {
  Under& one = under_[step % kMost];
  if (one.begin == 0) return;  // before there was a trace
  Record record{};
  record.kind = kind_;
  record.comm = comm_;
  record.begin = one.begin;
  record.end = now();
  record.number = static_cast<std::uint32_t>(step);
  record.a = wordOf(words_);
  record.b = bytes;
  record.c = one.refused;
  one.begin = 0;
  write(record);
}

}  // namespace tutti::trace
