// The calls of a group as ranks compare them: what the communicator counts, and what is said of a launch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "comm/diagnosis/call_log.h"
#include "comm/diagnosis/message_log.h"
#include "comm/launch/launched_call.h"

struct ncclComm;

namespace tutti::comm {

/// Of one communicator's part of a group. Storage is kept from one group to the next.
class NotedCalls {
 public:
  /// Forgets what was there before.
  void begin(ncclComm& comm);
  void add(const Op& op);

  /// From now on the communicator counts them, unless it does. What graphs replay, and when, nobody knows: it has no
  /// place among the other calls.
  void note(bool captured);
  /// Nothing was launched, or nobody knows what, and the communicator goes on: they are compared no more, for others
  /// may have heard of these.
  void forget();
  /// What is about to be launched, whose first operation is `first`; its number is right once the calls are noted.
  LaunchedCall launched(const Op& first) const;

  /// Whether TUTTI_CHECK_CALLS asks for compareAll().
  bool mustCompare() const;
  /// The collectives with those of all ranks; waits for these. ncclInvalidUsage on all of them, naming two and their
  /// calls, where they differ.
  Status compareAll() const;

 private:
  enum class Noted : std::uint8_t { No, Yes, InGraph };

  ncclComm* comm_ = nullptr;
  std::vector<Call> calls_;        ///< the collectives
  std::vector<Message> messages_;  ///< Send and Recv
  Noted noted_ = Noted::No;        ///< whether the communicator counts them
};

}  // namespace tutti::comm
