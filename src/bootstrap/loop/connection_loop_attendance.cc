// What one rank says to all others over the tree: how it is, that it waits in a call that all ranks are to make (for
// words about those who do not come), and an id by which to grow.
#include <utility>

#include "base/log.h"
#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/invitations.h"

namespace tutti::bootstrap {

bool ConnectionLoop::arrivesBy(Channel channel, int peer, int tag, Deadline deadline) {
  std::unique_lock lock(mutex_);
  waitLocked(1);
  const bool has = changed_.wait_until(lock, deadline.when(), [&] { return arrivedLocked(channel, peer, tag); });
  waitLocked(-1);
  return has;
}

void ConnectionLoop::enterCall(int call) {
  const std::lock_guard lock(mutex_);
  s_.inCall = call;
  s_.toldPresent = false;
  // Somebody has waited long, and asked by saying that it is there.
  if (s_.present.contains(call)) tellPresent();
}

void ConnectionLoop::leaveCall() {
  const std::lock_guard lock(mutex_);
  s_.present.erase(s_.present.begin(), s_.present.upper_bound(s_.inCall));
  s_.inCall = -1;
}

void ConnectionLoop::askWhoIsPresent() {
  const std::lock_guard lock(mutex_);
  tellPresent();
}

std::vector<int> ConnectionLoop::absent() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> ranks;
  const auto found = s_.present.find(s_.inCall);
  for (int rank = 0; rank < options_.nRanks; ++rank) {
    const bool here = rank == options_.rank || (found != s_.present.end() && found->second.contains(rank));
    if (!here) ranks.push_back(rank);
  }
  return ranks;
}

void ConnectionLoop::reportAbsent(const char* call) const {
  const std::vector<int> ranks = absent();
  if (ranks.empty()) return;
  warn(
      "Bootstrap: {} waits in {} for {}: all ranks of a communicator have to call it, and in the same order among such "
      "calls. Waiting goes on; TUTTI_SPLIT_REPORT_SEC sets when this is said",
      describe(options_.rank), call, ranks.size() == 1 ? describe(ranks.front()) : rankListText(ranks));
}

void ConnectionLoop::tellPresent() {
  if (std::exchange(s_.toldPresent, true) || s_.stopping) return;
  flood(FrameType::Present, options_.rank, std::make_shared<const Bytes>(encodeValue(s_.inCall)), 0);
}

/// There is one way between any two ranks in a tree: what is passed on to all but who sent it comes to each rank once.
void ConnectionLoop::onState(Name name, Frame frame) {
  const int rank = frame.header.tag;
  if (rank < 0 || rank >= options_.nRanks || frame.payload.size() > kMaxState) return;
  flood(FrameType::State, rank, std::make_shared<const Bytes>(frame.payload), name);
  s_.states.push_back(std::move(frame));
}

void ConnectionLoop::onPresent(Name name, const Frame& frame) {
  const int rank = frame.header.tag;
  const auto call = decodeValue<std::int32_t>(frame.payload);
  if (rank < 0 || rank >= options_.nRanks || !call) return;
  flood(FrameType::Present, rank, std::make_shared<const Bytes>(frame.payload), name);
  if (s_.inCall >= 0 && *call < s_.inCall) return;  // of a call that is over
  s_.present[*call].insert(rank);
  if (*call == s_.inCall) tellPresent();
}

void ConnectionLoop::invite(const SharedBytes& id) {
  const std::lock_guard lock(mutex_);
  if (!s_.stopping) flood(FrameType::Invite, 0, id, 0);
}

void ConnectionLoop::onInvite(Name name, const Frame& frame) {
  const auto id = decodeValue<ncclUniqueId>(frame.payload);
  if (!id) return;
  flood(FrameType::Invite, 0, std::make_shared<const Bytes>(frame.payload), name);
  invitations_->add(*id);
}

}  // namespace tutti::bootstrap
