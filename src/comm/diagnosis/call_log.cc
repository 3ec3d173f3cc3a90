#include "comm/diagnosis/call_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/hash.h"

namespace tutti::comm {

namespace {

/// Without what ranks may have differently.
struct Essence {
  explicit Essence(const Call& call)
      : root(call.root),
        func(static_cast<std::uint8_t>(call.func)),
        datatype(isReducing(call.func) ? call.datatype : static_cast<std::uint8_t>(ncclInt8)),
        redOp(call.redOp),
        count(isReducing(call.func) ? call.count
                                    : call.count * datatypeBytes(static_cast<ncclDataType_t>(call.datatype))) {}
  bool operator==(const Essence&) const = default;
  std::int32_t root;
  std::uint8_t func, datatype, redOp;
  std::uint64_t count;
};

bool hasRoot(ApiFunc func) {
  return func == ApiFunc::Reduce || func == ApiFunc::Broadcast || func == ApiFunc::Gather || func == ApiFunc::Scatter;
}

std::string_view opText(std::uint8_t redOp) {
  constexpr std::array<std::string_view, ncclNumOps> kNames{"sum", "prod", "max", "min", "avg"};
  return redOp < kNames.size() ? kNames[redOp] : "an operator of its own";
}

}  // namespace

std::optional<Call> callOf(const Op& op) {
  if (isPointToPoint(op.func) || op.count == 0) return std::nullopt;
  Call call;
  call.count = op.count;
  call.func = op.func;
  call.datatype = static_cast<std::uint8_t>(op.datatype);
  if (hasRoot(op.func)) call.root = op.root;
  if (isReducing(op.func)) call.redOp = op.redOp < ncclNumOps ? static_cast<std::uint8_t>(op.redOp) : Call::kOwnOp;
  return call;
}

bool sameCall(const Call& a, const Call& b) {
  return Essence(a) == Essence(b);
}

std::string describeCall(const Call& call) {
  std::string text = fmt::format("{} of {} {}", apiFuncName(call.func), call.count,
                                 datatypeName(static_cast<ncclDataType_t>(call.datatype)));
  if (call.redOp != Call::kNoOp) text += fmt::format(", {}", opText(call.redOp));
  if (call.root >= 0) text += fmt::format(", root {}", call.root);
  return text;
}

std::string ordinal(std::uint64_t n) {
  const std::uint64_t tens = n % 100;
  const char* end = tens >= 11 && tens <= 13 ? "th"
                    : n % 10 == 1            ? "st"
                    : n % 10 == 2            ? "nd"
                    : n % 10 == 3            ? "rd"
                                             : "th";
  return fmt::format("{}{}", n, end);
}

std::uint64_t hashWith(std::uint64_t before, const Call& call) {
  const Essence essence(call);
  const std::uint64_t rest = std::uint64_t{static_cast<std::uint32_t>(essence.root)} << 32 |
                             std::uint64_t{essence.func} << 16 | std::uint64_t{essence.datatype} << 8 | essence.redOp;
  return hashWord(rest, hashWord(essence.count, before));
}

void CallLog::add(std::span<const Call> calls) {
  const std::lock_guard lock(mutex_);
  for (const Call& call : calls) {
    hash_ = hashWith(hash_, call);
    ring_[++count_ % kKept] = {call, hash_};
    if (count_ > kKept) forgotten_ = std::max(forgotten_, count_ - kKept);
  }
}

void CallLog::addCaptured(std::span<const Call> calls) {
  const std::lock_guard lock(mutex_);
  for (const Call& call : calls) captured_ = hashWith(captured_, call);
}

std::uint64_t CallLog::captured() const {
  const std::lock_guard lock(mutex_);
  return captured_;
}

void CallLog::giveUp(std::size_t n) {
  const std::lock_guard lock(mutex_);
  count_ -= std::min<std::uint64_t>(n, count_);
  givenUp_ = true;
}

void CallLog::begin(std::span<const Call> calls) {
  const std::lock_guard lock(mutex_);
  begun_.assign(calls.begin(), calls.end());
}

std::uint64_t CallLog::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_.size();
}

std::optional<Call> CallLog::atOrBegun(std::uint64_t n) const {
  const std::lock_guard lock(mutex_);
  if (n > count_ && n - count_ <= begun_.size()) return begun_[n - count_ - 1];
  return keeps(n) ? std::optional(ring_[n % kKept].call) : std::nullopt;
}

std::uint64_t CallLog::count() const {
  const std::lock_guard lock(mutex_);
  return givenUp_ ? 0 : count_;
}

std::uint64_t CallLog::called() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::optional<std::uint64_t> CallLog::hashAtLocked(std::uint64_t n) const {
  if (n == 0) return 0;
  return keeps(n) ? std::optional(ring_[n % kKept].hash) : std::nullopt;
}

std::optional<std::uint64_t> CallLog::hashAt(std::uint64_t n) const {
  const std::lock_guard lock(mutex_);
  return hashAtLocked(n);
}

std::optional<Call> CallLog::at(std::uint64_t n) const {
  const std::lock_guard lock(mutex_);
  return keeps(n) ? std::optional(ring_[n % kKept].call) : std::nullopt;
}

std::string CallLog::describe(std::uint64_t n) const {
  const std::optional<Call> call = at(n);
  return call ? describeCall(*call) : std::string();
}

std::optional<CallLog::Run> CallLog::copyUpTo(std::uint64_t n, std::span<Call> to) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t first = n + 1;
  while (n - first + 1 < to.size() && keeps(first - 1) && hashAtLocked(first - 2)) --first;
  const std::optional<std::uint64_t> before = hashAtLocked(first - 1);
  if (!before) return std::nullopt;
  Run run{captured_, *before, 0};
  for (std::uint64_t i = first; i <= n; ++i) to[run.n++] = ring_[i % kKept].call;
  return run;
}

}  // namespace tutti::comm
