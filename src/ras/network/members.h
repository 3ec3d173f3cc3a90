// The processes of the job as one of them knows them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "bootstrap/link/crypto.h"
#include "ras/report/survey.h"

namespace tutti::ras {

/// The id of the process whose listener has this key.
ProcessId idOf(const bootstrap::Key& key);

/// A process, and the key that opens its door.
struct Member {
  ProcessFacts facts;
  bootstrap::Key key{};
};

/// Order in the ring: by address family, address, port, id.
struct RingPlace {
  int family = 0;
  std::array<std::uint8_t, 16> host{};
  std::uint16_t port = 0;
  ProcessId id = 0;
  friend auto operator<=>(const RingPlace&, const RingPlace&) = default;
};

/// The table. It only grows, and what it says of a process only gets worse: so tables that have told each other
/// everything are equal. Not thread-safe.
class Members {
 public:
  /// More are not taken in: what a stranger with the key could make this process keep is bounded.
  static constexpr std::size_t kMost = 1U << 18;

  explicit Members(Member self);

  /// What merge() has changed of a process.
  struct Change {
    bool fresh = false;  ///< it was not known
    bool state = false;  ///< it is worse than it was
  };
  /// Takes over what is new: the process itself, a later state, more devices. Unset: nothing was new. Nobody can tell
  /// this process that it is dead.
  std::optional<Change> merge(const Member& news);

  const Member& self() const { return *find(self_); }
  /// Null where it is not known. Valid until the next merge().
  const Member* find(ProcessId id) const;
  std::size_t size() const { return ring_.size(); }
  /// Those that live, without this process, in order of the ring from behind it on.
  std::vector<const Member*> successors() const;
  /// All of them in the order of the ring.
  std::vector<const Member*> all() const;
  /// Equal where tables are, and hardly ever elsewhere.
  std::uint64_t hash() const { return hash_; }

 private:
  using Ring = std::map<RingPlace, Member>;

  ProcessId self_;
  Ring ring_;
  std::unordered_map<ProcessId, Ring::iterator> places_;
  std::uint64_t hash_ = 0;
};

}  // namespace tutti::ras
