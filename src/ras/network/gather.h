// Asks all processes of the job what their ranks do.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "ras/network/links.h"
#include "ras/network/members.h"

namespace tutti::ras {

/// One round of questions, each on a connection of its own that is closed with the answer: nobody's answer depends on
/// another process. Not thread-safe.
class Gather {
 public:
  /// Both outlive this.
  Gather(const Members& members, Links& links) : members_(members), links_(links) {}

  /// Asks everybody who lives; `own` is this process's own answer. A round that is under way is given up.
  void begin(Answer own, SteadyClock::time_point now);
  void cancel();
  bool running() const { return running_; }
  /// Nobody is waited for any more.
  bool done() const { return running_ && open_ == 0; }
  /// To be called every few milliseconds while it runs.
  void tend(SteadyClock::time_point now);
  /// An answer came on a connection of role Leg. False: it is none.
  bool take(const Peer& peer, std::span<const std::byte> payload);
  /// A connection of role Leg has ended; who calls erases it.
  void ended(const Peer& peer, SteadyClock::time_point now);
  /// Nobody waits for that one any more: it is dead, or has left.
  void forget(ProcessId id);

  const std::map<ProcessId, Answer>& answers() const { return answers_; }
  /// Those who were asked and have not answered: not yet, or because they cannot be reached.
  std::vector<ProcessId> silent() const;
  /// How many of them might still answer.
  std::size_t open() const { return open_; }
  SteadyClock::time_point since() const { return since_; }

 private:
  enum class State : std::uint8_t { Waiting, Asked, Answered, Failed };
  struct Leg {
    State state = State::Waiting;
    std::uint64_t link = 0;
    int tries = 0;
    SteadyClock::time_point from;  ///< when it was asked; while it waits, not before this
  };

  void ask(ProcessId id, Leg& leg, SteadyClock::time_point now);
  void settle(Leg& leg, State state);

  const Members& members_;
  Links& links_;
  bool running_ = false;
  std::size_t open_ = 0;
  std::map<ProcessId, Leg> legs_;
  std::map<ProcessId, Answer> answers_;
  SteadyClock::time_point since_;
};

}  // namespace tutti::ras
