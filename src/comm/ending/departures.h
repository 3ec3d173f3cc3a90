// Ranks that have left in peace, and whether an operation here waits for one of them all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/diagnosis/progress_scan.h"
#include "comm/launch/launch.h"

struct ncclComm;

namespace tutti::comm {

/// What a rank has done by the time it leaves; its farewell carries it to all others.
struct RankAccount {
  std::uint64_t collectives = 0;  ///< that it has launched
  bool unfinished = false;        ///< kernels of its may not have ended
  bool replays = false;           ///< graphs were captured; what they replay is in none of these numbers
  bool partial = false;           ///< messages with some ranks are left out
  /// By the rank they went to or came from. Of a rank that is not here there were none, if it is not partial.
  std::map<int, MessageCounts> messages;
};

RankAccount accountOf(const Launcher& launcher);
/// A farewell goes to all ranks: of more peers than these it does not tell.
inline constexpr std::size_t kMostPeersTold = 256;
std::vector<std::byte> encodeAccount(const RankAccount& account);
/// What concerns rank `self`, for every rank may tell of many. Unset where the bytes are no account.
std::optional<RankAccount> decodeAccount(std::span<const std::byte> bytes, int self);

/// Whether one rank has launched something that cannot end without another one, which has left. Unknown where graphs
/// are in play, or the other's messages were not told.
enum class Need : std::uint8_t { No, Yes, Unknown };
/// Pure. `own`: of rank `self`; `gone`: of rank `rank`, unset where it gave none.
Need needFor(const RankAccount& own, int self, const std::optional<RankAccount>& gone, int rank);

/// Of one communicator with peers. A kernel that waits for a rank that has left would wait for ever: no connection
/// tells it, unless a host thread drives that. Used by the watch's thread (comm/ending/watch.h), which never waits.
class DepartureWatch {
 public:
  using Time = SteadyClock::time_point;

  /// `comm` must outlive the result.
  static Result<std::unique_ptr<DepartureWatch>> create(ncclComm& comm);

  /// Four times a second. `kernelsRun`: the last launch or replay has not ended. The communicator fails where one waits
  /// for a rank that has left.
  void tick(Time now, bool kernelsRun);

 private:
  struct Gone {
    int rank = -1;
    bool exited = false;
    std::optional<RankAccount> account;
  };
  DepartureWatch(ncclComm& comm, MovementSweep sweep) : comm_(comm), sweep_(std::move(sweep)) {}
  void hear();
  void rest();
  bool confirmed(Time now, Need need);
  void fail(const Gone& gone);

  ncclComm& comm_;
  MovementSweep sweep_;
  std::vector<Gone> gone_;
  std::optional<Time> neededSince_;
};

}  // namespace tutti::comm
