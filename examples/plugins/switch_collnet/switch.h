// The switch: takes what the nodes of a group send, reduces or gathers it, and sends the results. One thread serves all
// groups; nothing in it waits for one node alone.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "faults.h"
#include "protocol.h"
#include "socket.h"

namespace switch_collnet {

/// What one node of a group has sent and got.
struct NodeStatistics {
  std::string name;
  std::string state = "awaited";  ///< then joined, and at last left, died or failed
  std::uint64_t operations[3] = {0, 0, 0};
  std::uint64_t bytesIn = 0;   ///< of data, from the node
  std::uint64_t bytesOut = 0;  ///< of data, to the node
};

class Switch {
 public:
  /// What goes wrong in it: late, lost, wrong, die.
  Switch(Fd listener, Faults faults);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// Serves until stop(); true. Or until a fault lets it die; false. Results that are ready when it stops still leave,
  /// within two seconds.
  bool run();
  /// Any thread, and signal handlers.
  void stop();

  /// A line for each node of each group: the ones that are there, then the last thousand that have ended. For the
  /// thread that calls run(), or after it.
  std::string statistics() const;

 private:
  struct Peer;
  struct Group;
  using Peers = std::list<std::unique_ptr<Peer>>;

  void acceptPeers();
  void serve(Peer& peer);
  void greet(Peer& peer, const Frame& frame);
  void join(Peer& peer, const Join& wanted);
  void take(Peer& peer, const Frame& frame);
  void leave(Peer& peer);
  void advance(Group& group);
  bool mayGoOn(Group& group);
  void complete(Group& group);
  void answer(Group& group, const Operation& operation, std::size_t node, std::shared_ptr<const Bytes> data);
  void fail(Group& group, const std::string& why);
  void failPeer(Peer& peer, const std::string& why);
  void expire();
  void removeGone();
  int pollTimeout() const;
  void wait();
  void drain();

  const Fd listener_;
  const Fd wake_;
  const Faults faults_;
  std::atomic<bool> stopping_{false};
  bool dead_ = false;
  std::uint64_t operations_ = 0;  ///< of all groups, for the fault "die"
  Peers peers_;
  std::map<GroupKey, std::unique_ptr<Group>> groups_;
  std::list<std::string> ended_;  ///< statistics of groups that are gone
};

}  // namespace switch_collnet
