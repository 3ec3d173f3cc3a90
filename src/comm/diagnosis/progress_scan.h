// Finds out whether anything of a communicator moves at all.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/diagnosis/counter_copy.h"

namespace tutti::proxy {
class ProgressTask;
}

namespace tutti::comm {

class ChannelSet;

/// The last launch tells what its connections wait for, but what runs may be an earlier one, or a graph's. So before an
/// operation is said not to move, the counters of all connections of the communicator are read twice, in portions: what
/// moves between the end of the first pass and the start of the second has moved between the two looks at it, however
/// long a pass takes. Nobody waits: everything is begun at one call and looked after at later ones. One thread.
class MovementSweep {
 public:
  using Time = SteadyClock::time_point;
  enum class State : std::uint8_t { None, UnderWay, Moves, Still };
  using HasLeft = std::function<bool(int rank)>;

  /// The device must outlive it.
  static Result<MovementSweep> create(const gpu::Device& device);

  /// Forgets what was found.
  void reset();
  /// Goes on; begins where nothing is under way or known. `channels`: of one communicator, always the same. `collNet`:
  /// what drives its collectives in the network, likewise; null: nothing does. `hasLeft`: ranks whose memory may be
  /// gone. `apart`: from the end of the first pass to the start of the second. Moves and Still are said until reset().
  /// A device that does not copy keeps it UnderWay.
  State follow(Time now, const ChannelSet& channels, const proxy::ProgressTask* collNet, const HasLeft& hasLeft,
               milliseconds apart);

 private:
  enum class Step : std::uint8_t { Idle, First, Between, Second };
  struct End {
    int peer = -1;
    CounterPlace place;
    const proxy::ProgressTask* task = nullptr;
    bool seen = false;  ///< in the first pass
    CounterValues values;
    std::uint64_t work = 0;  ///< of the task
  };
  explicit MovementSweep(CounterCopy copy) : copy_(std::move(copy)) {}
  void list(const ChannelSet& channels);
  bool beginPortion(const HasLeft& hasLeft);
  bool takePortion();
  void pass(Time now, const proxy::ProgressTask* collNet, const HasLeft& hasLeft);

  CounterCopy copy_;
  bool copying_ = false;
  Step step_ = Step::Idle;
  State found_ = State::None;
  std::vector<End> ends_;
  std::uint64_t collNetWork_ = 0;     ///< in the first pass
  std::vector<std::size_t> portion_;  ///< indices of ends that are being copied
  std::size_t next_ = 0;              ///< the first end that this pass has not begun to copy
  Time firstOver_{};
};

}  // namespace tutti::comm
