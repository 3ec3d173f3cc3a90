// Ranks compare the collectives that they have called, in the background.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/diagnosis/call_log.h"
#include "comm/diagnosis/call_words.h"

namespace tutti::comm {

/// Of one communicator. Rank 0 says once a second what it has called last, if that is more than before, and all others
/// compare. Whoever leaves says so as well. Any thread; nothing waits.
class CallExchange {
 public:
  using Time = SteadyClock::time_point;
  /// How this rank reaches the others, and what they are called.
  struct Peers {
    int self = 0;
    std::function<void(std::span<const std::byte>)> say;
    std::function<std::string(int)> describe;
  };

  CallLog& log() { return log_; }
  const CallLog& log() const { return log_; }

  /// Takes what another rank says of its calls, and only that.
  bool hear(int rank, std::span<const std::byte> said);
  /// Says and compares what is due. A text that names two ranks and their calls, once they differ.
  std::optional<std::string> tick(Time now, const Peers& peers);
  /// Whether all calls of this rank were found to be those of rank 0, or it is rank 0.
  bool verified(int self) const;
  /// All others hear at once how far this rank is, and rank 0 answers.
  void sayLast(const Peers& peers);
  /// Whether something was heard of rank 0 after sayLast().
  bool answered() const;

 private:
  struct Search {
    int rank = -1;
    std::uint64_t number = 0;
    Time since{};
  };
  using Heard = std::pair<int, CallWord>;

  std::optional<std::string> take(const Heard& heard, Time now, const Peers& peers);
  std::optional<std::string> settleLate(Time now, const Peers& peers);
  std::optional<std::string> search(Time now, const Peers& peers);
  void answer(const CallWord& word, const Peers& peers) const;
  void tellAll(const Peers& peers) const;
  void sayNow(Time now, const Peers& peers);

  CallLog log_;
  mutable std::mutex mutex_;
  std::vector<Heard> heard_;
  std::map<int, CallWord> ahead_;                     ///< of ranks that had called more than this one
  std::pair<std::uint64_t, std::uint64_t> compared_;  ///< this rank's calls when these were looked at last
  std::uint64_t verified_ = 0;                        ///< this rank's first calls that rank 0 has made as well
  std::uint64_t said_ = 0;                            ///< calls that this rank has told of
  std::optional<Time> saidAt_;
  std::optional<Time> behindSince_;  ///< what rank 0 tells is more than this rank can compare
  std::optional<Time> toldAt_;
  std::optional<Search> search_;
  bool answered_ = false;
};

}  // namespace tutti::comm
