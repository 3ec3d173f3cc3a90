// All connections of a process to others of the job, under one poller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/clock.h"
#include "bootstrap/link/poller.h"
#include "ras/network/peer_link.h"

namespace tutti::ras {

/// What a connection is for.
enum class Role : std::uint8_t {
  Watch,    ///< this process has opened it, to see whether the other one lives
  Inbound,  ///< the other one has opened it
  Leg,      ///< this process has opened it, to ask
};

/// A connection and what is known of it.
struct Peer {
  static constexpr int kPatience = 2;

  std::uint64_t name = 0;  ///< under the poller
  Role role = Role::Inbound;
  ProcessId process = 0;  ///< 0: it has not said yet
  PeerLink link;
  SteadyClock::time_point since;
  SteadyClock::time_point heard;  ///< when something came last
  SteadyClock::time_point sent;   ///< when a keep-alive went out last
  bool wasOpen = false;
  bool parting = false;      ///< closed as soon as all is said
  int differences = 0;       ///< keep-alives one after the other that had another hash
  int patience = kPatience;  ///< so many of them are too many
  bool watchesWrite = false;
};

/// Owner of connections. Not thread-safe.
class Links {
 public:
  /// Names of connections are above `firstName`. `poller` outlives this.
  Links(bootstrap::Poller& poller, std::uint64_t firstName) : poller_(poller), last_(firstName) {}

  /// Valid until it is erased. One that has ended at once is not under the poller: whoever tends it finds out.
  Peer& add(PeerLink link, Role role, ProcessId process);
  Peer* find(std::uint64_t name);
  void erase(std::uint64_t name) { peers_.erase(name); }
  /// The poller watches for output where there is something to write. After everything that may write.
  void settle(Peer& peer);
  /// `each` may not add or erase any.
  void forEach(const std::function<void(Peer&)>& each);
  std::size_t size() const { return peers_.size(); }
  void clear() { peers_.clear(); }

 private:
  bootstrap::Poller& poller_;
  std::uint64_t last_;
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
};

}  // namespace tutti::ras
