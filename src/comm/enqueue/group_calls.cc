#include "comm/enqueue/group_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/state/communicator.h"
#include "comm/state/peer_wait.h"

namespace tutti::comm {

namespace {

/// A group's collectives in a few bytes.
struct Signature {
  std::uint64_t before = 0;  ///< collectives that came before the group
  std::uint64_t count = 0;
  std::uint64_t hash = 0;
  bool operator==(const Signature&) const = default;
};

std::string listed(const std::vector<Call>& calls, std::size_t place, std::uint64_t before) {
  if (place >= calls.size()) {
    return calls.size() == 1 ? "has only one collective in this group"
                             : fmt::format("has only {} collectives in this group", calls.size());
  }
  return fmt::format("calls {} as its {} collective of this communicator", describeCall(calls[place]),
                     ordinal(before + place + 1));
}

std::string textOf(const std::vector<Call>& first, const Signature& ofFirst, const std::vector<Call>& other,
                   const Signature& ofOther, const std::string& firstName, const std::string& otherName) {
  std::size_t place = 0;
  while (place < first.size() && place < other.size() && sameCall(first[place], other[place])) ++place;
  if (place == first.size() && place == other.size()) place = 0;  // they differ in what came before
  return fmt::format(
      "The calls of two ranks do not match. {} {}; {} {}. Nothing was launched. All ranks must make the same calls in "
      "the same order and groups",
      otherName, listed(other, place, ofOther.before), firstName, listed(first, place, ofFirst.before));
}

/// The first rank that has left; -1: none.
int firstGone(const ncclComm& comm) {
  for (int rank = 0; rank < comm.identity.nRanks; ++rank) {
    if (rank != comm.identity.rank && comm.parts.bootstrap->hasLeft(rank)) return rank;
  }
  return -1;
}

}  // namespace

Status compareGroup(ControlChannel& channel, std::span<const Call> calls, std::uint64_t before,
                    const std::function<std::string(int)>& describe) {
  Signature own{before, calls.size(), 0};
  for (const Call& call : calls) own.hash = hashWith(own.hash, call);
  std::vector<Signature> all(static_cast<std::size_t>(channel.size()));
  all[static_cast<std::size_t>(channel.rank())] = own;
  TRY(allGatherValues(channel, std::span(all)));
  const auto differs = std::find_if(all.begin(), all.end(), [&](const Signature& one) { return !(one == all[0]); });
  if (differs == all.end()) return {};
  // All ranks see the same, and hear what these two call.
  const int other = static_cast<int>(differs - all.begin());
  std::vector<Call> lists[2];
  for (const int rank : {0, other}) {
    std::vector<Call>& list = lists[rank == 0 ? 0 : 1];
    list.resize(all[static_cast<std::size_t>(rank)].count);
    if (rank == channel.rank()) list.assign(calls.begin(), calls.end());
    TRY(channel.broadcast(rank, std::as_writable_bytes(std::span(list))));
  }
  return fail(ncclInvalidUsage, "{}", textOf(lists[0], all[0], lists[1], *differs, describe(0), describe(other)));
}

Status compareGroup(ncclComm& comm, std::span<const Call> calls) {
  const PeerWait wait(comm);
  bootstrap::Bootstrap& bootstrap = *comm.parts.bootstrap;
  const std::uint64_t before = comm.calls->log().called();
  const Status compared =
      compareGroup(bootstrap, calls, before, [&bootstrap](int rank) { return bootstrap.describe(rank); });
  if (compared.ok()) return compared;
  if (comm.abort.raised()) {  // by another thread, which knows why
    restoreLastError(comm.abort.text());
    return compared;
  }
  const int gone = compared.code() == ncclRemoteError ? firstGone(comm) : -1;
  if (gone < 0) return compared;
  // The bootstrap knows that a rank is missed, and not in what.
  const std::string missed = fmt::format("the {} collective ({})", ordinal(before + 1), describeCall(calls.front()));
  const Status why = failedByDeparture(comm, gone, missed);
  failComm(comm, why, faultOnConnection(why));
  return why;
}

}  // namespace tutti::comm
