// Looks whether the communicators of this process wait for each other through other ranks (comm/diagnosis/circles.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "comm/diagnosis/circles.h"

struct ncclComm;

namespace tutti::comm {

/// Brings together what the probes of all communicators know, says to others what they need of it, and hands reports of
/// stalls what comes of it. While operations end in time it does nothing. The watch's thread only; nothing waits.
class CircleWatch {
 public:
  using Time = SteadyClock::time_point;

  /// Four times a second, after the probes had their tick. `comms`: all of the process.
  void tick(std::span<ncclComm* const> comms, Time now);

 private:
  /// Of one communicator, from one tick to the next.
  struct Kept {
    std::uint64_t comm = 0;  ///< another one may come to lie at the same address
    CommStanding::Place place = CommStanding::Place::Unknown;
    std::uint64_t number = 0;
    std::uint64_t order = 0;
    Time since{};  ///< it has stood so
    std::optional<CircleWord> said;
    Time saidAt{};
    Time firstSaidAt{};
  };
  void settle(CommStanding& standing, ncclComm& comm, Time now);
  void say(std::span<const CommStanding> all, std::size_t which, ncclComm& comm, Time now);
  bool isSaidByOthers(const CommStanding& standing, const CircleWord& word) const;

  std::map<const ncclComm*, Kept> kept_;
};

}  // namespace tutti::comm
