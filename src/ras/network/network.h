// A process's place among the processes of its job: whom it knows, watches, answers and asks.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "bootstrap/link/paced_listener.h"
#include "ras/network/farewell.h"
#include "ras/network/gather.h"
#include "ras/network/links.h"
#include "ras/network/members.h"
#include "ras/network/reporter.h"
#include "ras/network/timers.h"
#include "ras/network/watch.h"

namespace tutti::ras {

/// What a network needs of its process.
struct NetworkHooks {
  std::function<std::vector<CommFacts>()> comms;  ///< of this process; must not wait
  std::function<void(const Event&)> happened;     ///< must not call back
};

/// All of it never waits. One thread, the service's.
class Network {
 public:
  /// Names under the poller from this on are its own.
  static constexpr std::uint64_t kFirstName = std::uint64_t{1} << 60;

  /// `poller` outlives this. `listener`: where `self` says that it listens.
  Network(bootstrap::Poller& poller, Listener listener, Member self, const Timers& timers, NetworkHooks hooks);

  /// What this process has learned itself of others, and of its own devices.
  void add(std::span<const Member> members);
  void onEvent(const bootstrap::Poller::Event& event);
  /// A process has connected.
  void letIn(bootstrap::Arrival arrival);
  /// To be called after each wait.
  void tend();
  /// When tend() has something to do.
  Deadline next() const;

  const Members& members() const { return members_; }
  const Timers& timers() const { return timers_; }

  void beginSurvey();
  /// Nobody waits for it any more.
  void cancelSurvey() { gather_.cancel(); }
  bool surveying() const { return gather_.running(); }
  bool surveyDone() const { return gather_.done(); }
  /// What is known so far.
  Survey survey() const;
  /// The processes alone, without asking anybody.
  Survey roster() const;

  /// Says goodbye; done() when everybody who has to know does.
  void leave() { farewell_.begin(); }
  bool left() const { return farewell_.done(); }
  /// Closes all; those who wait for a word of this process see that.
  void close();

 private:
  void welcome();
  void advance(Peer& peer);
  /// False: nonsense.
  bool handle(Peer& peer, const bootstrap::Frame& frame);
  bool onIntro(Peer& peer, std::span<const std::byte> payload);
  bool onKeepAlive(Peer& peer, std::span<const std::byte> payload);
  bool onTable(Peer& peer, std::span<const std::byte> payload);
  bool onQuery(Peer& peer);
  bool onGoodbye(Peer& peer);
  void learn(const Member& news);
  void setState(ProcessId id, ProcessState state);
  void spreadNews();
  void sendTable(Peer& peer, std::span<const Member* const> members);
  void reap();
  void closeIdle(SteadyClock::time_point now);
  Answer ownAnswer() const;

  const Timers timers_;
  NetworkHooks hooks_;
  Members members_;
  bootstrap::PacedListener listener_;
  Reporter reporter_;
  Links links_;
  Watch watch_;
  Gather gather_;
  Farewell farewell_;
  std::set<ProcessId> news_;  ///< of whom others are still to be told
};

}  // namespace tutti::ras
