// What is known of ncclCommRevoke: of the own communicator's, and of those of peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "nccl.h"

struct ncclComm;

namespace tutti::comm {

/// Of one communicator. A revoked one moves no data any more; it can still be asked, be the parent of others, and be
/// destroyed. Its Abort stays raised, so that whatever is replayed leaves at once. Any thread.
class Revocation {
 public:
  /// True for whoever revokes it first.
  bool begin() { return !begun_.exchange(true); }
  bool begun() const { return begun_.load(std::memory_order_acquire); }
  /// Nothing is under way any more, or, with an error, something did not leave in time.
  void finish(Status result) { result_.store(result.code(), std::memory_order_release); }
  /// ncclInProgress between begin() and finish().
  ncclResult_t result() const { return result_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> begun_{false};
  std::atomic<ncclResult_t> result_{ncclInProgress};
};

/// Other ranks that have revoked their part of the communicator, as they have said. Any thread.
class RevokedPeers {
 public:
  using Time = SteadyClock::time_point;

  /// What a rank says to all others that it has revoked its part.
  static std::span<const std::byte> notice();
  /// Takes it, and only it.
  bool hear(int rank, std::span<const std::byte> said);
  bool contains(int rank) const;
  /// The first rank that was heard of, once this rank has waited for `grace` without a pause. `waits`: whether
  /// it waits for peers now. Called again and again by one thread.
  std::optional<int> hindering(Time now, bool waits, milliseconds grace);

 private:
  mutable std::mutex mutex_;
  std::vector<int> ranks_;
  std::optional<Time> waitsSince_;
};

/// ncclInvalidUsage if data can move on it no more. `label`: as the API names the call in messages.
Status checkNotRevoked(const ncclComm& comm, std::string_view label);

}  // namespace tutti::comm
