#include "comm/offspring.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "bootstrap/kin.h"
#include "comm/ending/ending.h"
#include "comm/enqueue/start_job.h"
#include "comm/init/init.h"
#include "comm/making.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/background.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// A child that is to be made, with copies of all that its call was given. Its job owns it.
struct Offspring {
  ncclComm& parent;
  CallGate::Pass pass;  ///< of the parent: who aborts it waits
  const char* function;
  Births::Tie tie;
  ncclComm_t* place;
  CommSettings settings;
  Config config;
  int number;  ///< among the parent's children
};

/// What the user asked for is not there, and does no harm.
void noteSharing(const ncclComm& parent, bool asked, const char* field) {
  if (asked) info(kInit, "comm {}: {} is set, but its children have resources of their own", fmt::ptr(&parent), field);
}

Result<std::shared_ptr<Offspring>> plan(ncclComm& parent, const char* function, Births::Tie tie, ncclComm_t* place,
                                        const ncclConfig_t* config) {
  *place = nullptr;
  CommSettings settings = currentCommSettings();
  ASSIGN(Config chosen, configOf(config, &parent.config, settings));
  return std::make_shared<Offspring>(
      Offspring{parent, CallGate::Pass(parent.gate), function, tie, place, std::move(settings), std::move(chosen), 0});
}

CommIdentity identityOf(const Offspring& plan, int rank, int nRanks, std::uint64_t commId, int color, int key) {
  CommIdentity identity = plan.parent.identity;
  identity.rank = rank;
  identity.nRanks = nRanks;
  identity.commId = commId;
  identity.function = plan.function;
  identity.origin = fmt::format("parent {} childCount {} n {} color {} key {}", fmt::ptr(&plan.parent), plan.number,
                                nRanks, color, key);
  return identity;
}

/// Inits the child and shows it. A failure is told where the call can return it; else the child's state has it.
Status bear(Offspring& plan, CommIdentity identity, const JoinStep& join) {
  auto child = makeComm(std::move(identity), std::move(plan.config), std::move(plan.settings));
  Status status;
  {
    const CallGate::Pass inside(child->gate);
    const Births::Birth birth = plan.parent.births.begin(child->abort, plan.tie);
    status = runInit(*child, join);
  }
  if (!status.ok()) {
    child->abort.correct(fmt::format("{}: rank {} could not become rank {} of {} of a new communicator: {}",
                                     plan.function, plan.parent.identity.rank, child->identity.rank,
                                     child->identity.nRanks, child->abort.text()));
  }
  *plan.place = child.release();
  return plan.parent.config.blocking() ? status : Status();
}

JoinStep joinAs(bootstrap::Kin kin) {
  // A step can be copied, as functions can.
  return [kin = std::make_shared<bootstrap::Kin>(std::move(kin))](bootstrap::JoinOptions& options) {
    return bootstrap::Bootstrap::join(options, std::move(*kin));
  };
}

Status split(Offspring& plan, int color, int key) {
  ncclComm& parent = plan.parent;
  plan.number = ++parent.progress.children;
  noteSharing(parent, parent.config.values.splitShare != 0, "splitShare");
  Result<bootstrap::Kin> kin = parent.parts.bootstrap->split(color, key, plan.settings.splitReportAfter);
  if (!kin.ok()) {
    // The ranks of the parent are out of step: whatever they do next would meet what is left of this.
    if (!parent.abort.raised()) failComm(parent, kin.status());
    return kin.status();
  }
  if (!kin.value().member()) {
    info(kInit, "Rank {} has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator", parent.identity.rank);
    return {};
  }
  CommIdentity identity = identityOf(plan, kin.value().rank, kin.value().size(), kin.value().commHash(), color, key);
  return bear(plan, std::move(identity), joinAs(std::move(kin).value()));
}

Result<std::vector<int>> survivorsOf(const ncclComm& parent, std::span<const int> exclude) {
  std::vector<int> excluded(exclude.begin(), exclude.end());
  std::sort(excluded.begin(), excluded.end());
  const int nRanks = parent.identity.nRanks;
  if (excluded.front() < 0 || excluded.back() >= nRanks) {
    return fail(ncclInvalidArgument, "CommShrink : {} in the list of ranks to exclude is no rank: there are {}",
                excluded.front() < 0 ? excluded.front() : excluded.back(), nRanks);
  }
  if (const auto twice = std::adjacent_find(excluded.begin(), excluded.end()); twice != excluded.end()) {
    return fail(ncclInvalidArgument, "CommShrink : rank {} stands twice in the list of ranks to exclude", *twice);
  }
  if (std::binary_search(excluded.begin(), excluded.end(), parent.identity.rank)) {
    return fail(ncclInvalidArgument, "CommShrink : rank {} is in the list of ranks to exclude: only the others call it",
                parent.identity.rank);
  }
  std::vector<int> survivors;
  for (int rank = 0; rank < nRanks; ++rank) {
    if (!std::binary_search(excluded.begin(), excluded.end(), rank)) survivors.push_back(rank);
  }
  return survivors;
}

/// Of the parent nothing is expected any more: calls and kernels leave.
Status abortParent(ncclComm& parent) {
  constexpr milliseconds kBound{10'000};
  parent.abort.raise(
      Status(ncclInvalidUsage),
      "the communicator was aborted by ncclCommShrink(NCCL_SHRINK_ABORT); ncclCommAbort is what is left");
  std::shared_ptr<BackgroundTask> task;
  {
    const std::lock_guard lock(parent.progress.mutex);
    task = parent.progress.task;
  }
  if (!task || task->endsBy(Deadline::in(kBound))) return {};
  return fail(ncclInternalError, "CommShrink : {} did not leave communicator {} within {} s after its abort",
              parent.progress.pending.load() != nullptr ? parent.progress.pending.load() : "a call", fmt::ptr(&parent),
              kBound.count() / 1000);
}

Status shrink(Offspring& plan, const std::vector<int>& survivors, bool abortFirst) {
  ncclComm& parent = plan.parent;
  plan.number = ++parent.progress.children;
  noteSharing(parent, parent.config.values.shrinkShare != 0, "shrinkShare");
  if (abortFirst) TRY(awaitKernels(parent));
  const auto self = std::lower_bound(survivors.begin(), survivors.end(), parent.identity.rank);
  const std::uint64_t commId = hashBytes(std::as_bytes(std::span(survivors)), parent.identity.commId + 1);
  CommIdentity identity =
      identityOf(plan, static_cast<int>(self - survivors.begin()), static_cast<int>(survivors.size()), commId, 0, 0);
  const Status born = bear(plan, std::move(identity),
                           [&](bootstrap::JoinOptions& options) -> Result<std::unique_ptr<bootstrap::Bootstrap>> {
                             ASSIGN(bootstrap::Kin kin, parent.parts.bootstrap->shrink(survivors, *options.abort));
                             return bootstrap::Bootstrap::join(options, std::move(kin));
                           });
  if (abortFirst && born.ok()) parent.progress.replaced.store(true);
  return born;
}

/// The job of one child, under the name of its call.
Result<Progress> start(ncclComm& parent, const char* function, std::function<Status()> making) {
  parent.progress.pending = function;
  return startJob(parent, JobKind::Child, std::move(making), false);
}

}  // namespace

Result<Progress> splitComm(const SplitRequest& request) {
  constexpr const char* kFunction = "ncclCommSplit";
  // One that was revoked has stopped all that it can.
  const bool revoked = request.parent->progress.revocation.begun();
  ASSIGN(const std::shared_ptr<Offspring> child,
         plan(*request.parent, kFunction, revoked ? Births::Tie::Life : Births::Tie::Health, request.newcomm,
              request.config));
  return start(*request.parent, kFunction,
               [child, color = request.color, key = request.key] { return split(*child, color, key); });
}

Result<Progress> shrinkComm(const ShrinkRequest& request) {
  constexpr const char* kFunction = "ncclCommShrink";
  ncclComm& parent = *request.parent;
  if (parent.progress.starting.load() || parent.progress.initResult.load() != ncclSuccess) {
    return fail(ncclInvalidArgument, "CommShrink : communicator {} {}: there is nothing to shrink", fmt::ptr(&parent),
                parent.progress.starting.load() ? "is not initialised yet" : "could not be initialised");
  }
  ASSIGN(std::vector<int> survivors, survivorsOf(parent, request.exclude));
  ASSIGN(const std::shared_ptr<Offspring> child,
         plan(parent, kFunction, Births::Tie::Life, request.newcomm, request.config));
  const bool abortFirst = request.abortFirst;
  if (abortFirst) TRY(abortParent(parent));
  return start(parent, kFunction,
               [child, survivors = std::move(survivors), abortFirst] { return shrink(*child, survivors, abortFirst); });
}

}  // namespace tutti::comm
