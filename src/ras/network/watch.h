// Whether the next processes in the ring live.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "ras/network/links.h"
#include "ras/network/members.h"
#include "ras/network/reporter.h"
#include "ras/network/timers.h"

namespace tutti::ras {

/// Each process watches the one behind it in the ring by a connection of its own, on which both say now and then that
/// they live. While that one does not answer, more of those behind it are watched, until one does: so the ring closes
/// around the dead, however many they are. Not thread-safe.
class Watch {
 public:
  /// All of them outlive this. `declareDead`: nothing was heard of a process for too long.
  Watch(const Members& members, Links& links, const Timers& timers, const Reporter& reporter,
        std::function<void(ProcessId)> declareDead)
      : members_(members), links_(links), timers_(timers), reporter_(reporter), declareDead_(std::move(declareDead)) {}

  /// To be called now and then, a few times in each keep-alive.
  void tend(SteadyClock::time_point now);
  /// Something came on a connection of role Watch.
  void heard(Peer& peer, SteadyClock::time_point now);
  /// A connection of role Watch has ended; who calls erases it.
  void ended(const Peer& peer, SteadyClock::time_point now);
  /// Those of which nothing was heard for a while.
  std::vector<ProcessId> unresponsive() const;

 private:
  struct Watched {
    std::uint64_t link = 0;  ///< 0: there is none just now
    SteadyClock::time_point heard;
    SteadyClock::time_point nextDial;
    bool dialled = false;
    bool unresponsive = false;
  };

  void noticePause(SteadyClock::time_point now);
  std::vector<const Member*> wanted() const;
  void choose(SteadyClock::time_point now);
  void dial(const Member& member, Watched& watched, SteadyClock::time_point now);
  void tendLink(ProcessId id, Watched& watched, SteadyClock::time_point now);
  void judge(ProcessId id, Watched& watched, SteadyClock::time_point now, std::vector<ProcessId>& dead);

  const Members& members_;
  Links& links_;
  const Timers& timers_;
  const Reporter& reporter_;
  std::function<void(ProcessId)> declareDead_;
  std::map<ProcessId, Watched> watched_;
  SteadyClock::time_point lastTend_{};
};

}  // namespace tutti::ras
