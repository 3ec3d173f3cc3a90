#include "comm/shrinking.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/kin.h"
#include "comm/birth.h"
#include "comm/ending/ending.h"
#include "comm/offspring.h"
#include "comm/state/background.h"

namespace tutti::comm {

namespace {

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
  if (abortFirst) TRY(awaitKernels(parent));
  const milliseconds reportAfter = plan.reportAfter();  // the child takes its settings
  const auto self = std::lower_bound(survivors.begin(), survivors.end(), parent.identity.rank);
  CommIdentity identity =
      identityOf(plan, static_cast<int>(self - survivors.begin()), static_cast<int>(survivors.size()), 0, 0);
  const Status born = bear(plan, std::move(identity), [&](const Abort& abort) {
    return parent.parts.bootstrap->shrink(survivors, abort, reportAfter);
  });
  if (abortFirst && born.ok()) parent.progress.replaced.store(true);
  return born;
}

}  // namespace

Result<Progress> shrinkComm(const ShrinkRequest& request) {
  constexpr const char* kFunction = "ncclCommShrink";
  ncclComm& parent = *request.parent;
  if (parent.progress.starting.load() || parent.progress.initResult.load() != ncclSuccess) {
    return fail(ncclInvalidArgument, "CommShrink : communicator {} {}: there is nothing to shrink", fmt::ptr(&parent),
                parent.progress.starting.load() ? "is not initialised yet" : "could not be initialised");
  }
  ASSIGN(std::vector<int> survivors, survivorsOf(parent, request.exclude));
  ASSIGN(const std::shared_ptr<Offspring> child,
         planOffspring(parent, kFunction, Births::Tie::Life, request.newcomm, request.config,
                       {"shrinkShare", &ncclConfig_t::shrinkShare, !request.abortFirst}));
  const bool abortFirst = request.abortFirst;
  if (abortFirst) TRY(abortParent(parent));
  return startBirth(parent, kFunction, [child, survivors = std::move(survivors), abortFirst] {
    return shrink(*child, survivors, abortFirst);
  });
}

}  // namespace tutti::comm
