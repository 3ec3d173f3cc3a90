#include "trace/points.h"

#include <chrono>

#include "trace/call.h"
#include "trace/session.h"

namespace tutti::trace {

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

Within::Within(std::uint16_t comm) : before_(current().comm) {
  current().comm = comm;
}

Within::~Within() {
  current().comm = before_;
}

Requests::Requests(Kind kind, StepWords words) : kind_(kind), words_(words), comm_(current().comm) {}

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
