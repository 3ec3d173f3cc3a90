// A process that ends in order tells the others.
#pragma once

#include <set>

#include "ras/network/links.h"
#include "ras/network/members.h"

namespace tutti::ras {

/// Says goodbye on all connections. A peer that stays says that it has heard it; a connection that ends without that
/// may have ended before the goodbye was read, or its peer is about to end as well. Then one after the other is told on
/// a connection of its own, also whom such a connection led to: who leaves last finds nobody any more. Not thread-safe.
class Farewell {
 public:
  /// Both outlive this.
  Farewell(const Members& members, Links& links) : members_(members), links_(links) {}

  void begin();
  bool begun() const { return begun_; }
  void tend();
  /// Somebody has come who does not know yet.
  void tell(Peer& peer);
  /// The peer has heard it, and stays. False: it was told nothing.
  bool heard(const Peer& peer);
  /// A connection has ended; who calls erases it.
  void ended(const Peer& peer);
  /// Somebody who stays has heard it, or there is nobody.
  bool done() const { return begun_ && done_; }

 private:
  const Members& members_;
  Links& links_;
  bool begun_ = false;
  bool done_ = false;
  std::set<std::uint64_t> pending_;
  std::set<ProcessId> tried_;  ///< on connections of their own
  bool staysSomebody_ = false;
};

}  // namespace tutti::ras
