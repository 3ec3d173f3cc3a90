#include "comm/enqueue/group_work.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "comm/enqueue/comm_work.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "comm/state/residence.h"
#include "comm/state/revocation.h"

namespace tutti::comm {

namespace {

/// Communicators that are kept room for from one group of a thread to the next.
constexpr std::size_t kCommsKept = 64;

}  // namespace

GroupWork::GroupWork() = default;
GroupWork::GroupWork(GroupWork&& other) noexcept {
  *this = std::move(other);
}
GroupWork::~GroupWork() = default;

GroupWork& GroupWork::operator=(GroupWork&& other) noexcept {
  jobs = std::exchange(other.jobs, {});
  blocking = std::exchange(other.blocking, std::nullopt);
  forceBlocking = std::exchange(other.forceBlocking, false);
  pool_ = std::exchange(other.pool_, {});
  nComms_ = std::exchange(other.nComms_, 0);
  turns_ = std::exchange(other.turns_, {});
  event = std::move(other.event);
  return *this;
}

Status GroupWork::admit(const ncclComm& comm) {
  if (blocking.has_value() && *blocking != comm.config.blocking()) {
    return fail(ncclInvalidArgument, "Blocking and nonblocking communicators are not allowed in the same group");
  }
  blocking = comm.config.blocking();
  return {};
}

Status GroupWork::add(Job job) {
  if (job.kind == JobKind::End) {
    forceBlocking = true;
  } else {
    TRY(admit(*job.comm));
  }
  jobs.push_back(std::move(job));
  return {};
}

Status GroupWork::add(ncclComm& comm, const Op& op) {
  TRY(admit(comm));
  const auto known = comms();
  const auto place = std::find_if(known.begin(), known.end(), [&](const auto& one) { return &one->comm() == &comm; });
  if (place != known.end()) {
    (*place)->add(op);
    return {};
  }
  if (nComms_ == pool_.size()) pool_.push_back(std::make_unique<CommWork>());
  CommWork& added = *pool_[nComms_];
  added.begin(comm);
  added.add(op);
  ++nComms_;
  return {};
}

bool GroupWork::collectsInitOf(const ncclComm& comm) const {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const Job& job) { return job.kind == JobKind::Init && job.comm == &comm; });
}

void GroupWork::takeTurns() {
  std::vector<std::shared_ptr<Family>> families;
  for (const auto& one : comms()) {
    const std::shared_ptr<Family>& family = one->comm().membership->family;
    if (family == nullptr) continue;
    family->noteUse(one->comm());
    if (std::find(families.begin(), families.end(), family) == families.end()) families.push_back(family);
  }
  if (!families.empty()) Family::takeTurns(families, turns_);
}

bool GroupWork::mustWaitForTurn() const {
  return std::any_of(turns_.begin(), turns_.end(), [](const FamilyTurn& turn) { return !turn.hasCome(); });
}

Status GroupWork::awaitTurns() const {
  const auto failure = [this] {
    for (const auto& one : comms()) TRY(one->comm().abort.status());
    return Status();
  };
  for (const FamilyTurn& turn : turns_) {
    turn.await([&] { return !failure().ok(); });
  }
  return turns_.empty() ? Status() : failure();
}

void GroupWork::leaveComms() {
  event.stop();
  turns_.clear();
  for (const auto& one : comms()) one->leave();
  nComms_ = 0;
}

void GroupWork::clear() {
  leaveComms();
  if (pool_.size() > kCommsKept) pool_.resize(kCommsKept);
  jobs.clear();
  blocking.reset();
  forceBlocking = false;
}

void dropWork(GroupWork& work, Status why) {
  for (Job& job : work.jobs) {
    if (job.kind == JobKind::Memory) job.comm->residence->giveUp();
    if (job.kind == JobKind::Finalize) job.comm->progress.finalized.store(false);
    if (job.kind == JobKind::Revoke) job.comm->progress.revocation->finish(why);
    if (job.kind != JobKind::Init) continue;
    job.comm->abort.raise(why, "the group that was to initialise the communicator failed");
    job.comm->progress.starting.store(false, std::memory_order_release);
  }
  work.clear();
}

}  // namespace tutti::comm
