#include "comm/state/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/connect/shared_connections.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/graph_refs.h"
#include "comm/launch/launch_order.h"
#include "comm/state/communicator.h"
#include "comm/state/family_peers.h"
#include "comm/state/lost_peer.h"
#include "comm/state/membership.h"
#include "gpu/memory_ledger.h"
#include "proxy/group.h"

namespace tutti::comm {

namespace {

/// How often a thread that waits for its turn looks whether there is anything left to wait for.
constexpr auto kLook = std::chrono::milliseconds(20);

}  // namespace

Result<std::shared_ptr<Family>> Family::found(std::shared_ptr<PooledDevice> device, int place) {
  // Whatever a graph holds, what shares its connections must wait for it.
  ASSIGN(std::shared_ptr<LaunchOrder> order, LaunchOrder::create(*device->device, {.mix = true, .within = true}));
  std::shared_ptr<Family> family(new Family(std::move(device), place, std::move(order)));
  TRY(family->takeCare());
  return family;
}

/// What a member has sent over a network may not have gone when it ends, and another one need not have the connection.
Status Family::takeCare() {
  proxy::GroupHooks hooks;
  hooks.busy = [] { return false; };  // kernels are their members' groups' business
  hooks.aborted = [this] { return failed(); };
  ASSIGN(std::unique_ptr<proxy::ProgressGroup> caretaker, device_->group(std::move(hooks)));
  connections_->driveBy(std::move(caretaker));
  return {};
}

Family::Family(std::shared_ptr<PooledDevice> device, int place, std::shared_ptr<LaunchOrder> order)
    : device_(std::move(device)),
      place_(place),
      order_(std::move(order)),
      memory_(std::make_shared<gpu::MemoryLedger>()),
      connections_(std::make_shared<SharedConnections>()),
      peers_(std::make_shared<FamilyPeers>()) {}

Family::~Family() {
  connections_->stopCaring();
}

Family::Member* Family::find(const ncclComm& comm) {
  const auto member =
      std::find_if(members_.begin(), members_.end(), [&](const Member& one) { return one.comm == &comm; });
  return member == members_.end() ? nullptr : &*member;
}

Status Family::join(ncclComm& comm) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load()) {
      return fail(ncclRemoteError,
                  "{}: the communicators whose connections this one was to share (splitShare, shrinkShare) have failed "
                  "meanwhile. Shrink with NCCL_SHRINK_ABORT, which shares nothing",
                  describeComm(comm));
    }
    members_.push_back({&comm});
  }
  // Not the other way round: a failure may come at once.
  comm.abort.addListener([family = weak_from_this(), &comm](Status why) {
    if (const std::shared_ptr<Family> alive = family.lock()) alive->spread(comm, why);
  });
  return {};
}

void Family::noteUse(const ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  if (Member* const member = find(comm)) member->used = true;
}

bool Family::leave(const ncclComm& comm) {
  // Asked before the lock: a loss that is raised comes to spread() with LostPeer's own lock held.
  const bool lost = comm.lostPeer->heard();
  const std::lock_guard lock(mutex_);
  if (Member* const member = find(comm)) member->left = true;
  lostPeers_ = lostPeers_ || lost;
  return std::all_of(members_.begin(), members_.end(), [](const Member& one) { return one.left; });
}

void Family::forget(const ncclComm& comm) {
  peers_->forget(comm);
  connections_->notDrivenBy(comm.parts.progress.get());
  const std::lock_guard lock(mutex_);
  std::erase_if(members_, [&](const Member& one) { return one.comm == &comm; });
}

bool Family::hasOthers(const ncclComm& comm) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& one) { return one.comm != &comm && !one.left; });
}

bool Family::outlives(const ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  if (Member* const member = find(comm)) member->going = true;
  return std::any_of(members_.begin(), members_.end(), [](const Member& one) { return !one.going; });
}

bool Family::isAlone(const ncclComm& comm) const {
  const std::lock_guard lock(mutex_);
  return std::all_of(members_.begin(), members_.end(), [&](const Member& one) { return one.comm == &comm; });
}

bool Family::graphsKeepOthers(const ncclComm& comm) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& one) { return one.comm != &comm && one.left && one.comm->graphs->any(); });
}

bool Family::isEldest(const ncclComm& comm) const {
  const std::lock_guard lock(mutex_);
  const auto eldest = std::find_if(members_.begin(), members_.end(), [](const Member& one) { return !one.left; });
  return eldest != members_.end() && eldest->comm == &comm;
}

bool Family::complete() const {
  const std::lock_guard lock(mutex_);
  return !lostPeers_;
}

bool Family::failed() const {
  return failed_.load();
}

void Family::awaitSpread() const {
  const std::lock_guard lock(mutex_);
}

/// Its kernels have left in the middle of what they did, or may have: nobody knows how far the connections are. One
/// that has never used them, as a child that could not be made, does no harm.
void Family::spread(const ncclComm& from, Status why) {
  if (failed_.load()) return;  // also where this comes of what is done below
  const std::string cause = from.abort.text();
  const std::lock_guard lock(mutex_);
  const Member* const member = find(from);
  if (member == nullptr || !member->used || failed_.exchange(true)) return;
  const std::string text = fmt::format(
      "the communicator shares its connections (splitShare, shrinkShare) with {:#x}, of which this is rank {} of {} "
      "and which has given them up: {}. All that share end together: call ncclCommAbort on each of them",
      from.identity.commId, from.identity.rank, from.identity.nRanks, cause);
  for (const Member& relative : members_) {
    ncclComm& comm = *relative.comm;
    if (relative.comm == &from || comm.abort.raised()) continue;
    // Peers first: whoever is woken here may abort the communicator at once, and they would hear of that instead.
    if (!relative.left && comm.parts.bootstrap) {
      comm.parts.bootstrap->announceFailure(Status(ncclRemoteError), text, why.code() == ncclRemoteError);
    }
    comm.abort.raise(why, describeComm(comm) + ": " + text, describeComm(comm) + ": " + text);
  }
  turned_.notify_all();
}

FamilyTurn& FamilyTurn::operator=(FamilyTurn&& other) noexcept {
  if (this == &other) return *this;
  end();
  family_ = std::move(other.family_);
  place_ = other.place_;
  return *this;
}

bool FamilyTurn::hasCome() const {
  const std::lock_guard lock(family_->turnMutex_);
  return place_ == family_->turns_.begin();
}

void FamilyTurn::await(const std::function<bool()>& givenUp) const {
  std::unique_lock lock(family_->turnMutex_);
  while (place_ != family_->turns_.begin() && !givenUp()) family_->turned_.wait_for(lock, kLook);
}

void FamilyTurn::end() {
  if (!family_) return;
  {
    const std::lock_guard lock(family_->turnMutex_);
    family_->turns_.erase(place_);
  }
  family_->turned_.notify_all();
  family_.reset();
}

void Family::takeTurns(std::span<const std::shared_ptr<Family>> families, std::vector<FamilyTurn>& turns) {
  static std::mutex all;
  const std::lock_guard together(all);
  for (const std::shared_ptr<Family>& family : families) {
    const std::lock_guard lock(family->turnMutex_);
    FamilyTurn turn;
    turn.place_ = family->turns_.insert(family->turns_.end(), 0);
    turn.family_ = family;
    turns.push_back(std::move(turn));
  }
}

std::size_t deviceMemory(const ncclComm& comm, gpu::MemoryClass kind) {
  const Family* const family = comm.membership->family.get();
  const bool eldest = family != nullptr && family->isEldest(comm);
  return comm.memory->bytes(kind) + (eldest ? family->memory()->bytes(kind) : 0);
}

}  // namespace tutti::comm
