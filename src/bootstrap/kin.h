// Ranks that know each other already, because they share a communicator: a new one of theirs needs no root.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ranks/abort.h"
#include "base/socket/socket.h"
#include "base/status.h"
#include "bootstrap/link/crypto.h"
#include "bootstrap/link/wire.h"

namespace tutti::bootstrap {

struct JoinOptions;
struct Joined;

/// A communicator that is to be made, as one of its ranks knows it before it joins.
struct Kin {
  int rank = -1;                 ///< this one's, in the new communicator; -1: it is no member
  std::vector<int> origins;      ///< by new rank: which rank that is in the communicator they come from
  std::vector<RankEntry> table;  ///< by new rank: where it listens
  Key key{};                     ///< of the new communicator
  int number = 0;                ///< of the split, counted on the communicator they come from
  Listener listener;             ///< this rank's entry of the table

  int size() const { return static_cast<int>(table.size()); }
  bool member() const { return rank >= 0; }
  /// The same as Bootstrap::commHash() will be.
  std::uint64_t commHash() const;
};

/// What a rank says of itself to its kin, and a socket of its own where they will find it: on the same address as it
/// listens now. Errors: ncclSystemError.
struct Introduction {
  RankEntry entry;
  Listener listener;
};
Result<Introduction> introduce(const Joined& joined);

/// Who of `all`, in order of their ranks, has the same color as rank `self`: by key, then by rank. `parentKey`: of the
/// communicator that is split. Errors: ncclInvalidUsage where ranks count their splits differently.
Result<Kin> kinOf(std::span<const Relative> all, int self, const Key& parentKey);

/// The ranks of `joined` in `survivors`, ascending and this one among them, tell each other where they will listen. No
/// other rank is asked for anything, and it does not matter whether `joined` has failed. Waits for all of them, and
/// looks at `abort`; those who have not come after `reportAfter` are named once in a warning, 0: never. Errors:
/// ncclRemoteError naming who is gone, or did not come; the Abort's status.
Result<Kin> findSurvivors(const Joined& joined, std::span<const int> survivors, const Abort& abort,
                          milliseconds reportAfter);

/// Everything up to the connected parent in the tree, of ranks that know each other. Errors: as Bootstrap::join.
Result<Joined> joinKin(const JoinOptions& options, Kin kin);

}  // namespace tutti::bootstrap
