#include "comm/diagnosis/call_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tutti::comm {

namespace {

std::optional<Call> told(const CallWord& word, std::uint64_t number) {
  if (number < word.first() || number > word.count) return std::nullopt;
  return word.calls[number - word.first()];
}

bool same(const std::optional<Call>& a, const std::optional<Call>& b) {
  return a && b && sameCall(*a, *b);
}

/// What is to be looked for, by what differs and by whether one of them is a call ahead.
std::string remedy(const TwoRanks& ranks, const CallLog& own, const CallWord& word, std::uint64_t number) {
  const Call ours = own.at(number).value_or(Call{});
  const Call theirs = told(word, number).value_or(Call{});
  const bool theyMissOne = same(own.at(number + 1), theirs);
  const bool weMissOne = same(ours, told(word, number + 1));
  if (theyMissOne && weMissOne) return "They make both calls, in different order";
  if (theyMissOne) return fmt::format("It seems that {} does not call {}", ranks.other, describeCall(ours));
  if (weMissOne) return fmt::format("It seems that {} does not call {}", ranks.own, describeCall(theirs));
  if (ours.func != theirs.func)
    return "Look for a call that only some ranks make, or that they make in different order";
  if (ours.root != theirs.root) return "All ranks must name the same root";
  if (ours.redOp != theirs.redOp) return "All ranks must give the same operator";
  if (ours.datatype != theirs.datatype && isReducing(ours.func)) return "All ranks must give the same data type";
  return "All ranks must give the same number of elements";
}

}  // namespace

CallWord wordUpTo(const CallLog& log, std::uint64_t n) {
  CallWord word;
  word.count = n;
  word.captured = log.captured();
  std::uint64_t first = n + 1;
  while (first > 1 && n - first + 1 < CallWord::kCalls && log.at(first - 1) && log.hashAt(first - 2)) --first;
  const std::optional<std::uint64_t> before = log.hashAt(first - 1);
  if (!before) {  // forgotten
    word.count = 0;
    return word;
  }
  word.before = *before;
  for (std::uint64_t i = first; i <= n; ++i) word.calls[word.nCalls++] = log.at(i).value_or(Call{});
  return word;
}

std::span<const std::byte> bytesOf(const CallWord& word) {
  return std::as_bytes(std::span(&word, 1));
}

std::optional<CallWord> wordFrom(std::span<const std::byte> bytes) {
  CallWord word;
  if (bytes.size() != sizeof(word)) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof(word));
  const bool sound = word.magic == CallWord::kMagic && word.kind <= CallWord::Kind::End &&
                     word.nCalls <= CallWord::kCalls && word.nCalls <= word.count &&
                     std::all_of(word.calls.begin(), word.calls.begin() + word.nCalls,
                                 [](const Call& call) { return call.func <= ApiFunc::Scatter; });
  return sound ? std::optional(word) : std::nullopt;
}

Comparison compare(const CallLog& own, const CallWord& word) {
  const std::uint64_t before = word.first() - 1;
  const std::uint64_t both = std::min(own.count(), word.count);
  if (both < before || own.captured() != word.captured) return {};
  const std::optional<std::uint64_t> ours = own.hashAt(before);
  if (!ours) return {};
  if (*ours != word.before) return {Comparison::Result::Before, before};
  for (std::uint64_t n = word.first(); n <= both; ++n) {
    if (!same(own.at(n), told(word, n))) return {Comparison::Result::Differ, n};
  }
  return {Comparison::Result::Same, both};
}

std::string mismatchText(const TwoRanks& ranks, const CallLog& own, const CallWord& word, std::uint64_t number) {
  return fmt::format(
      "The calls of two ranks do not match. {} is in its {} collective of this communicator, {}; {} is in its {}, {}. "
      "{}",
      ranks.own, ordinal(number), own.describe(number), ranks.other, ordinal(number),
      describeCall(told(word, number).value_or(Call{})), remedy(ranks, own, word, number));
}

std::string lostMismatchText(const TwoRanks& ranks, std::uint64_t number) {
  return fmt::format(
      "The calls of two ranks do not match. {} and {} have differed in one of their first {} collectives of this "
      "communicator, which are not kept any more. TUTTI_CHECK_CALLS=1 names the call before it is made",
      ranks.own, ranks.other, number);
}

}  // namespace tutti::comm
