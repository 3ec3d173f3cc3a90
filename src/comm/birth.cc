#include "comm/birth.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "bootstrap/bootstrap.h"
#include "bootstrap/kin.h"
#include "comm/enqueue/start_job.h"
#include "comm/init/init.h"
#include "comm/init/join_stage.h"
#include "comm/making.h"
#include "comm/offspring.h"
#include "comm/state/background.h"
#include "comm/state/membership.h"

namespace tutti::comm {

namespace {

/// Before the init, whose first line in the log says which communicator it is of. It fails with what the meeting has
/// come to.
JoinStep meetFirst(ncclComm& child, const Meeting& meet) {
  auto kin = std::make_shared<bootstrap::Kin>();  // a step can be copied, as functions can
  const Status met = runGuarded([&]() -> Status {
    ASSIGN(*kin, meet(child.abort));
    child.identity.commId = kin->commHash();
    return {};
  });
  return [kin, met](bootstrap::JoinOptions& options) -> Result<std::unique_ptr<bootstrap::Bootstrap>> {
    TRY(met);
    return bootstrap::Bootstrap::join(options, std::move(*kin));
  };
}

}  // namespace

Status bear(Offspring& plan, CommIdentity identity, const Meeting& meet) {
  auto child = makeComm(std::move(identity), std::move(plan.config), std::move(plan.settings));
  child->membership = std::move(plan.membership);
  Status status;
  {
    const CallGate::Pass inside(*child->gate);
    const Births::Birth birth = plan.parent.births->begin(child->abort, plan.tie);
    status = runInit(*child, meetFirst(*child, meet));
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
