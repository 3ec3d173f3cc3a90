#include "comm/splitting.h"

#include <memory>
#include <utility>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/kin.h"
#include "comm/birth.h"
#include "comm/offspring.h"
#include "comm/state/revocation.h"

namespace tutti::comm {

namespace {

Status split(Offspring& plan, int color, int key) {
  ncclComm& parent = plan.parent;
  plan.number = ++parent.progress.children;
  Result<bootstrap::Kin> kin = parent.parts.bootstrap->split(color, key, plan.reportAfter());
  if (!kin.ok()) {
    // The ranks of the parent are out of step: whatever they do next would meet what is left of this.
    if (!parent.abort.raised()) failComm(parent, kin.status());
    return kin.status();
  }
  if (!kin.value().member()) {
    info(kInit, "Rank {} has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator", parent.identity.rank);
    return {};
  }
  CommIdentity identity = identityOf(plan, kin.value().rank, kin.value().size(), color, key);
  return bear(plan, std::move(identity), [&](const Abort&) { return std::move(kin); });
}

}  // namespace

Result<Progress> splitComm(const SplitRequest& request) {
  constexpr const char* kFunction = "ncclCommSplit";
  // One that was revoked has stopped all that it can.
  const bool revoked = request.parent->progress.revocation->begun();
  ASSIGN(const std::shared_ptr<Offspring> child,
         planOffspring(*request.parent, kFunction, revoked ? Births::Tie::Life : Births::Tie::Health, request.newcomm,
                       request.config, {"splitShare", &ncclConfig_t::splitShare}));
  return startBirth(*request.parent, kFunction,
                    [child, color = request.color, key = request.key] { return split(*child, color, key); });
}

}  // namespace tutti::comm
