// A communicator that is made from the ranks of another one: what splitting and shrinking have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "comm/init/join_stage.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/births.h"
#include "comm/state/communicator.h"
#include "comm/state/progress.h"
#include "nccl.h"

namespace tutti::comm {

/// A child that is to be made, with copies of all that its call was given. Its job owns it.
struct Offspring {
  ncclComm& parent;
  CallGate::Pass pass;  ///< of the parent: who aborts it waits
  const char* function;
  Births::Tie tie;
  ncclComm_t* place;
  CommSettings settings;
  Config config;
  Membership membership;  ///< with the parent, if the child shares its connections
  int number;             ///< among the parent's children
};

/// The field of the parent's configuration that says whether a child shares.
struct ShareField {
  const char* name;
  int ncclConfig_t::*member;
  bool counts = true;  ///< for a child that is made in this way
};

/// `newcomm` is null from now on, until the child is there. Errors: of the configuration.
Result<std::shared_ptr<Offspring>> planOffspring(ncclComm& parent, const char* function, Births::Tie tie,
                                                 ncclComm_t* newcomm, const ncclConfig_t* config,
                                                 const ShareField& field);

CommIdentity identityOf(const Offspring& plan, int rank, int nRanks, std::uint64_t commId, int color, int key);

/// Inits the child and shows it. A failure is told where the call can return it; else the child's state has it.
Status bear(Offspring& plan, CommIdentity identity, const JoinStep& join);

/// The job of one child, under the name of its call.
Result<Progress> startBirth(ncclComm& parent, const char* function, std::function<Status()> making);

}  // namespace tutti::comm
