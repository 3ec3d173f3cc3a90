#include "trace/call.h"

#include <algorithm>
#include <array>

#include "trace/format.h"
#include "trace/session.h"

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

}  // namespace tutti::trace
