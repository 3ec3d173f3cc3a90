// Ranks that have left in peace, and whether an operation here waits for one of them all the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

class MovementSweep;
enum class Need : std::uint8_t;

/// Of one communicator with peers. A kernel that waits for a rank that has left would wait for ever: no connection
/// tells it, unless a host thread drives that. Used by the watch's thread (comm/ending/watch.h), which never waits.
class DepartureWatch {
 public:
  using Time = SteadyClock::time_point;

  /// `comm` must outlive the result.
  static Result<std::unique_ptr<DepartureWatch>> create(ncclComm& comm);
  DepartureWatch(const DepartureWatch&) = delete;
  ~DepartureWatch();

  /// Takes what those have said who have left since the last call.
  void hear();
  /// Four times a second, after hear(). `kernelsRun`: the last launch or replay has not ended; it may not have begun.
  /// The communicator fails where one waits for a rank that has left.
  void tick(Time now, bool kernelsRun);

 private:
  struct Gone;
  DepartureWatch(ncclComm& comm, std::unique_ptr<MovementSweep> sweep);
  void rest();
  bool confirmed(Time now, Need need);
  std::string missedBy(const Gone& gone) const;
  void fail(const Gone& gone);

  ncclComm& comm_;
  std::unique_ptr<MovementSweep> sweep_;
  std::vector<Gone> gone_;
  std::optional<Time> neededSince_;
};

}  // namespace tutti::comm
