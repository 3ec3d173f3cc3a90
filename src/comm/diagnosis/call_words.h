// What ranks tell one another of their calls, and what comes of comparing it. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "comm/diagnosis/call_log.h"

namespace tutti::comm {

/// One rank's account of its calls, as it travels: some of them, and hashes that stand for those before.
struct CallWord {
  enum class Kind : std::uint8_t {
    Plain,    ///< its latest calls
    Ask,      ///< the same, and all others are to say theirs
    Answer,   ///< the same, to the question of rank `to`, which cannot compare them
    Tell,     ///< its latest calls; rank `to` is to tell all the calls that it keeps
    Detail,   ///< a part of these
    End,      ///< the last part
    Verdict,  ///< its calls and those of rank `to` differ, see verdictText()
  };
  static constexpr std::uint32_t kMagic = 0x314c4c43;
  static constexpr std::size_t kCalls = 13;

  std::uint32_t magic = kMagic;
  Kind kind = Kind::Plain;
  std::uint8_t nCalls = 0;
  std::uint16_t known = 0;  ///< of a verdict: which of its calls are told, a bit each
  std::int32_t to = -1;
  std::uint32_t question = 0;  ///< the number of an Ask, or of that which this is the Answer to
  std::uint64_t count = 0;     ///< the number of the last of these calls
  std::uint64_t captured = 0;  ///< hash of calls that went into graphs
  std::uint64_t before = 0;    ///< hash of the calls before the first one
  std::array<Call, kCalls> calls{};

  /// The number of the first of these calls.
  std::uint64_t first() const { return count - nCalls + 1; }
};
static_assert(sizeof(CallWord) == 248);

/// The calls up to the n-th, as many as a word carries and the log keeps.
CallWord wordUpTo(const CallLog& log, std::uint64_t n);
/// As bytes, while `word` lives.
std::span<const std::byte> bytesOf(const CallWord& word);
/// Unset where the bytes are none.
std::optional<CallWord> wordFrom(std::span<const std::byte> bytes);

struct Comparison {
  enum class Result : std::uint8_t {
    Same,     ///< up to `number`
    Differ,   ///< the calls with that number, and none before it
    Before,   ///< some call up to `number` does
    Unknown,  ///< these calls were not made here as yet, or are forgotten; or others went into graphs, which may stand
              ///< for some that the other rank has made at once
  };
  Result result = Result::Unknown;
  std::uint64_t number = 0;
};
/// What another rank has said, against this rank's calls.
Comparison compare(const CallLog& own, const CallWord& word);

/// That this rank's call with that number is another one than that of rank `to`, which has said `word`; with the calls
/// after them, which say more about the cause.
CallWord verdictOf(const CallLog& own, int to, const CallWord& word, std::uint64_t number);
/// The same where only that is known up to which call they differ.
CallWord lostVerdict(int to, std::uint64_t number);

/// Two ranks for a text: the one that has found a verdict, and the other, as describe() has them.
struct TwoRanks {
  std::string own;
  std::string other;
};
/// Sentences that name both ranks and both calls, and what may be wrong.
std::string verdictText(const TwoRanks& ranks, const CallWord& verdict);

}  // namespace tutti::comm
