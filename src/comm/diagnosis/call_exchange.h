// Ranks compare the collectives that they have called, and the messages between them, in the background and as they
// leave.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/diagnosis/call_log.h"
#include "comm/diagnosis/call_words.h"

namespace tutti::comm {

class MessageExchange;
class MessageLog;

/// Of one communicator. Rank 0 says once a second what it has called last, if that is more than before, and all others
/// compare. Whoever leaves, or meets an error that calls which differ may be the cause of, asks everybody. Any thread;
/// nothing waits.
class CallExchange {
 public:
  using Time = SteadyClock::time_point;
  /// How this rank reaches the others, and what they are called.
  struct Peers {
    int self = 0;
    int nRanks = 1;
    std::function<void(std::span<const std::byte>)> say;
    std::function<std::string(int)> describe;
  };
  /// What has come out: the communicator fails with that.
  struct Finding {
    Status why;
    std::string text;
    bool differ = true;  ///< calls do; else: they do not, and suspect() had another cause
  };

  CallExchange();
  CallExchange(const CallExchange&) = delete;
  ~CallExchange();

  CallLog& log() { return log_; }
  const CallLog& log() const { return log_; }
  MessageLog& messages();

  /// Takes what another rank says of its calls, and only that.
  bool hear(int rank, std::span<const std::byte> said);
  /// Whether somebody may wait for what tick() makes of what was heard.
  bool due() const;
  /// How much of it waits for tick().
  std::size_t heard() const;
  /// The same of a rank that has left; empty: it has not said anything.
  void hearLast(int rank, std::span<const std::byte> said);
  /// Says and compares what is due.
  std::optional<Finding> tick(Time now, const Peers& peers);

  /// Whether all messages of this rank were compared, and all its calls are among those that rank 0 has said so long
  /// ago that whoever has made others would have been heard of.
  bool comparedBefore(Time now, int self) const;
  /// Everybody else hears what this rank has called, and is to say what it has.
  void askAll(Time now, const Peers& peers);
  /// Whether all that is left of them have; or had before, and have called as much as this rank.
  bool answered(const Peers& peers) const;

  /// An error that may come of calls that differ, and its text: unless they do, tick() finds that, within a second.
  /// False, and nothing is done, where nobody compares (watched()), or nothing was called.
  bool suspect(Status why, std::string text);
  /// Whether somebody calls tick() from time to time.
  void watched(bool is);
  /// Whether calls were found to differ.
  bool differ() const;
  /// The same, or another rank has said so: the communicator is about to fail for that, if tick() is called. What is
  /// heard from now on comes of it.
  bool failing() const;

 private:
  struct Search {
    int rank = -1;
    std::uint64_t number = 0;
    Time since{};
  };
  struct Suspicion {
    Status why;
    std::string text;
    std::optional<Time> since;  ///< unset: nobody was asked yet
  };
  struct Known {
    std::uint64_t agreed = 0;    ///< its first calls are this rank's
    std::uint32_t answered = 0;  ///< the last question of this rank's that it has answered
    bool gone = false;
  };
  using Heard = std::pair<int, CallWord>;

  std::optional<Finding> take(const Heard& heard, Time now, const Peers& peers);
  std::optional<Finding> found(const CallWord& verdict, const Peers& peers);
  std::optional<Finding> settleLate(Time now, const Peers& peers);
  std::optional<Finding> search(Time now, const Peers& peers);
  std::optional<Finding> compareMessages(Time now, const Peers& peers);
  std::optional<Finding> settleSuspicion(Time now, const Peers& peers);
  void answer(const Heard& asked, Time now, const Peers& peers);
  void tellAll(const Peers& peers) const;
  void say(std::uint64_t upTo, CallWord::Kind kind, Time now, const Peers& peers);
  void askAllLocked(Time now, const Peers& peers);
  bool answeredLocked(const Peers& peers) const;

  CallLog log_;
  mutable std::mutex mutex_;
  std::unique_ptr<MessageExchange> messages_;
  std::vector<Heard> heard_;
  std::map<int, Known> known_;
  std::map<int, CallWord> ahead_;                     ///< of ranks that had called more than this one
  std::pair<std::uint64_t, std::uint64_t> compared_;  ///< this rank's calls when these were looked at last
  std::uint64_t verified_ = 0;                        ///< this rank's first calls that rank 0 has made as well
  std::optional<Time> verifiedAt_;                    ///< since when that many are
  CallWord said_;                                     ///< what all others have heard last of this rank's calls
  std::optional<Time> saidAt_;
  std::uint64_t answers_ = 0;        ///< given since then
  std::optional<Time> behindSince_;  ///< what rank 0 tells is more than this rank can compare
  std::optional<Time> toldAt_;
  std::optional<Search> search_;
  std::uint32_t question_ = 0;  ///< the number of the last one to everybody, which was of …
  std::uint64_t asked_ = 0;     ///< … so many calls
  std::optional<Suspicion> suspicion_;
  bool watched_ = false;
  bool differ_ = false;
  bool told_ = false;  ///< that they do
};

}  // namespace tutti::comm
