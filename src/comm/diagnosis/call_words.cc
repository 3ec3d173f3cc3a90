#include "comm/diagnosis/call_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tutti::comm {

namespace {

/// The calls of a verdict.
enum WordPlace : std::size_t { kOwn, kOwnNext, kOther, kOtherNext, kPlaces };

std::optional<Call> told(const CallWord& word, std::uint64_t number) {
  if (number < word.first() || number > word.count) return std::nullopt;
  return word.calls[number - word.first()];
}

bool same(const std::optional<Call>& a, const std::optional<Call>& b) {
  return a && b && sameCall(*a, *b);
}

std::optional<Call> of(const CallWord& verdict, WordPlace place) {
  return (verdict.known >> place & 1U) != 0 ? std::optional(verdict.calls[place]) : std::nullopt;
}

/// What is to be looked for, by what differs and by whether one of them is a call ahead.
std::string remedy(const TwoRanks& ranks, const CallWord& verdict) {
  const Call ours = of(verdict, kOwn).value_or(Call{});
  const Call theirs = of(verdict, kOther).value_or(Call{});
  const bool theyMissOne = same(of(verdict, kOwnNext), theirs);
  const bool weMissOne = same(ours, of(verdict, kOtherNext));
  if (theyMissOne && weMissOne) return "They make both calls, in different order";
  // A call without elements is none (callOf()).
  constexpr const char* kMissed = "It seems that {} does not call {}, or without elements";
  if (theyMissOne) return fmt::format(kMissed, ranks.other, describeCall(ours));
  if (weMissOne) return fmt::format(kMissed, ranks.own, describeCall(theirs));
  if (ours.func != theirs.func)
    return "Look for a call that only some ranks make, or that they make in different order";
  if (ours.root != theirs.root) return "All ranks must name the same root";
  if (ours.redOp != theirs.redOp) return "All ranks must give the same operator";
  if (ours.datatype != theirs.datatype && isReducing(ours.func)) return "All ranks must give the same data type";
  return "All ranks must give the same number of elements";
}

bool isCall(const Call& call) {
  return call.func <= ApiFunc::Scatter;
}

}  // namespace

CallWord wordUpTo(const CallLog& log, std::uint64_t n) {
  CallWord word;
  const std::optional<CallLog::Run> run = log.copyUpTo(n, word.calls);
  if (!run) {  // forgotten
    word.captured = log.captured();
    return word;
  }
  word.count = n;
  word.nCalls = static_cast<std::uint8_t>(run->n);
  word.captured = run->captured;
  word.before = run->before;
  return word;
}

std::span<const std::byte> bytesOf(const CallWord& word) {
  return std::as_bytes(std::span(&word, 1));
}

std::optional<CallWord> wordFrom(std::span<const std::byte> bytes) {
  CallWord word;
  if (bytes.size() != sizeof(word)) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof(word));
  const bool verdict = word.kind == CallWord::Kind::Verdict;
  const bool sound = word.magic == CallWord::kMagic && word.kind <= CallWord::Kind::Verdict &&
                     word.nCalls <= CallWord::kCalls && (verdict || word.nCalls <= word.count) &&
                     std::all_of(word.calls.begin(), word.calls.begin() + word.nCalls, isCall);
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
    const std::optional<Call> call = own.at(n);
    if (!call) return {};  // forgotten meanwhile: another thread goes on calling
    if (!same(call, told(word, n))) return {Comparison::Result::Differ, n};
  }
  return {Comparison::Result::Same, both};
}

CallWord lostVerdict(int to, std::uint64_t number) {
  CallWord verdict;
  verdict.kind = CallWord::Kind::Verdict;
  verdict.to = to;
  verdict.count = number;
  return verdict;
}

CallWord verdictOf(const CallLog& own, int to, const CallWord& word, std::uint64_t number) {
  CallWord verdict = lostVerdict(to, number);
  verdict.nCalls = kPlaces;
  const auto put = [&verdict](WordPlace place, const std::optional<Call>& call) {
    if (!call) return;
    verdict.calls[place] = *call;
    verdict.known = static_cast<std::uint16_t>(verdict.known | 1U << place);
  };
  put(kOwn, own.at(number));
  put(kOwnNext, own.at(number + 1));
  put(kOther, told(word, number));
  put(kOtherNext, told(word, number + 1));
  return verdict;
}

std::string verdictText(const TwoRanks& ranks, const CallWord& verdict) {
  const std::optional<Call> ours = of(verdict, kOwn);
  const std::optional<Call> theirs = of(verdict, kOther);
  if (!ours || !theirs) {
    return fmt::format(
        "The calls of two ranks do not match. {} and {} have differed in one of their first {} collectives of this "
        "communicator, which are not kept any more. TUTTI_CHECK_CALLS=1 names the call before it is made",
        ranks.own, ranks.other, verdict.count);
  }
  return fmt::format(
      "The calls of two ranks do not match. {} is in its {} collective of this communicator, {}; {} is in its {}, {}. "
      "{}",
      ranks.own, ordinal(verdict.count), describeCall(*ours), ranks.other, ordinal(verdict.count),
      describeCall(*theirs), remedy(ranks, verdict));
}

}  // namespace tutti::comm
