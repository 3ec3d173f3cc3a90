#include "comm/offspring.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "comm/enqueue/start_job.h"
#include "comm/init/init.h"
#include "comm/making.h"

namespace tutti::comm {

void noteSharing(const ncclComm& parent, bool asked, const char* field) {
  if (asked) info(kInit, "comm {}: {} is set, but its children have resources of their own", fmt::ptr(&parent), field);
}

Result<std::shared_ptr<Offspring>> planOffspring(ncclComm& parent, const char* function, Births::Tie tie,
                                                 ncclComm_t* place, const ncclConfig_t* config) {
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

Status bear(Offspring& plan, CommIdentity identity, const JoinStep& join) {
  auto child = makeComm(std::move(identity), std::move(plan.config), std::move(plan.settings));
  Status status;
  {
    const CallGate::Pass inside(child->gate);
    const Births::Birth birth = plan.parent.births->begin(child->abort, plan.tie);
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

Result<Progress> startBirth(ncclComm& parent, const char* function, std::function<Status()> making) {
  parent.progress.pending = function;
  return startJob(parent, JobKind::Child, std::move(making), false);
}

}  // namespace tutti::comm
