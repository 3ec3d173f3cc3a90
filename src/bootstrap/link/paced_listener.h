// A listening socket that strangers cannot make into much work: what they cost in descriptors, time and log lines is
// limited, and who belongs here waits a few milliseconds for it at most.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/socket/socket.h"
#include "base/socket/unproven.h"
#include "bootstrap/link/crypto.h"
#include "bootstrap/link/gate.h"
#include "bootstrap/link/link.h"
#include "bootstrap/link/poller.h"

namespace tutti::bootstrap {

/// A connection that was let in: it has shown its pass, or has one of the process's places in which to do so.
struct Arrival {
  std::unique_ptr<Link> link;
  UnprovenPlaces::Place place;  ///< to be given back once link->passed()
};

/// Accepts, under a Poller. The kernel keeps a client for a second until it has said something: who shows the right
/// pass comes in at once, who has not spoken takes a place, and the others are closed, with a reset where no whole
/// hello has come: a client that belongs here then tries again (dial.h). Rests a little after it has turned somebody
/// away, and longer while the process has no descriptors: the kernel keeps who waits. While many are turned away the
/// kernel answers few who do not knock (gate.h). Not thread-safe.
class PacedListener {
 public:
  /// `whose`: in messages, "rank 3" or "the root".
  PacedListener(Listener listener, std::string whose, UnprovenPlaces& places = UnprovenPlaces::ofProcess(),
                Sieges& sieges = Sieges::ofProcess());

  bool valid() const { return listener_.valid(); }
  /// From now on `poller` tells under `name` when somebody waits. It outlives this. False: the system refuses.
  bool watch(Poller& poller, std::uint64_t name);
  void close();

  /// Lets in who waits, in order, a batch at a time. `serverRank`: as the clients know this side.
  std::vector<Arrival> take(const Key& key, int serverRank, std::uint32_t maxFrame);
  /// One that was let in has not proved to belong here, and is gone.
  void sawStranger() { ++unproven_; }
  /// Goes on after a rest, and opens the gate; to be called after each wait.
  void tend();
  /// When tend() has something to do.
  Deadline next() const { return valid() ? rest_.earlierOf(gate_.next()) : Deadline::never(); }
  /// Since when clients have waited because this process has no descriptors for them; unset where it has some.
  std::optional<SteadyClock::time_point> starvedSince() const { return starved_; }
  /// Of clients that do not knock the kernel lets one in so many through: 1 while there are few strangers.
  std::uint32_t oneIn() const { return gate_.oneIn(); }
  /// How many have been turned away so far, those that the kernel did not let through left out.
  std::uint64_t turnedAway() const { return turnedAway_; }

 private:
  bool letIn(Socket& socket, const ServerHandshake& server, std::uint32_t maxFrame, std::vector<Arrival>& arrivals);
  void onStarved(int error);
  void restFor(milliseconds span);
  void report();

  Listener listener_;
  Gate gate_;
  std::string whose_;
  UnprovenPlaces& places_;
  Poller* poller_ = nullptr;
  std::uint64_t name_ = 0;
  Deadline rest_ = Deadline::never();
  milliseconds starvedRest_{0};
  std::optional<SteadyClock::time_point> starved_;
  std::uint64_t turnedAway_ = 0;
  std::uint64_t unproven_ = 0;  ///< strangers that had been let in, since the gate was told
  std::uint64_t reported_ = 0;
  Deadline nextReport_ = Deadline::in(milliseconds(0));
  Address last_;  ///< who was turned away last
};

}  // namespace tutti::bootstrap
