// The collectives that a rank has called, as ranks compare them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/plan/op.h"

namespace tutti::comm {

/// What all ranks have to say alike of one collective. As it travels.
struct Call {
  static constexpr std::uint8_t kNoOp = 0xff;   ///< it reduces nothing
  static constexpr std::uint8_t kOwnOp = 0xfe;  ///< an operator that the application has made: its handle says nothing
  std::uint64_t count = 0;                      ///< as the API function counts
  std::int32_t root = -1;                       ///< -1: it has none
  ApiFunc func = ApiFunc::AllReduce;
  std::uint8_t datatype = 0;  ///< ncclDataType_t
  std::uint8_t redOp = kNoOp;
  std::uint8_t unused = 0;
};
static_assert(sizeof(Call) == 16);

/// Of Send and Recv there is none: they have two ranks only; nor of a collective without elements, which does nothing,
/// and which a rank may as well leave out.
std::optional<Call> callOf(const Op& op);
/// Whether two ranks that call these call the same. What only moves bytes may be of any type: its bytes count.
bool sameCall(const Call& a, const Call& b);
/// "AllReduce of 1024 ncclFloat32, sum", "Broadcast of 16 ncclInt8, root 3".
std::string describeCall(const Call& call);
/// "17th".
std::string ordinal(std::uint64_t n);
/// A hash of calls in their order: of those before, and one more.
std::uint64_t hashWith(std::uint64_t before, const Call& call);

/// Numbers calls from 1, keeps the last ones, and a hash of all of them. Takes no memory after it was made. Any thread.
class CallLog {
 public:
  static constexpr std::size_t kKept = 1024;
  /// Some calls that follow one another, and hashes of the others, all as they were at one moment.
  struct Run {
    std::uint64_t captured = 0;  ///< of those that went into graphs
    std::uint64_t before = 0;    ///< of the calls before the first one
    std::size_t n = 0;
  };

  void add(std::span<const Call> calls);
  void add(const Call& call) { add(std::span(&call, 1)); }
  /// The same of calls that go into a graph: they have no number.
  void addCaptured(std::span<const Call> calls);
  /// The last `n` calls were not made after all, or it is not known which were. Others may have heard of them: from now
  /// on nothing is known here that could be compared.
  void giveUp(std::size_t n);

  /// Calls that can be compared: all so far, or none after giveUp().
  std::uint64_t count() const;
  /// All calls so far.
  std::uint64_t called() const;
  /// These are being made, and wait for other ranks; empty: none any more.
  void begin(std::span<const Call> calls);
  std::uint64_t begun() const;
  /// The n-th of all, those that were begun included; unset where it is not known.
  std::optional<Call> atOrBegun(std::uint64_t n) const;
  /// A hash of those that went into graphs.
  std::uint64_t captured() const;
  /// Of the first `n` calls; unset where that is not known any more, or not yet. Of none: 0.
  std::optional<std::uint64_t> hashAt(std::uint64_t n) const;
  /// The n-th; unset as above.
  std::optional<Call> at(std::uint64_t n) const;
  /// "AllReduce of …"; empty where at() is unset.
  std::string describe(std::uint64_t n) const;
  /// The calls up to the n-th, as many as `to` has room for and are kept; unset where hashAt(n) is.
  std::optional<Run> copyUpTo(std::uint64_t n, std::span<Call> to) const;

 private:
  struct Entry {
    Call call;
    std::uint64_t hash = 0;  ///< of the calls up to this one
  };
  bool keeps(std::uint64_t n) const { return n >= 1 && n <= count_ && n > forgotten_ && !givenUp_; }
  std::optional<std::uint64_t> hashAtLocked(std::uint64_t n) const;

  mutable std::mutex mutex_;
  std::vector<Entry> ring_ = std::vector<Entry>(kKept);  ///< by number, modulo kKept
  std::uint64_t count_ = 0;                              ///< calls so far
  std::uint64_t forgotten_ = 0;                          ///< the first ones, which others have taken the place of
  std::uint64_t hash_ = 0;                               ///< of all of them
  std::uint64_t captured_ = 0;
  bool givenUp_ = false;
  std::vector<Call> begun_;
};

}  // namespace tutti::comm
