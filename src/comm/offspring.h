// A communicator that is made from the ranks of another one: what splitting and shrinking have in common.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "comm/state/births.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "nccl.h"

namespace tutti::comm {

struct CommSettings;
struct Membership;

/// A child that is to be made, with copies of all that its call was given. Its job owns it.
struct Offspring {
  ncclComm& parent;
  CallGate::Pass pass;  ///< of the parent: who aborts it waits
  const char* function;
  Births::Tie tie;
  ncclComm_t* place;
  std::shared_ptr<const CommSettings> settings;
  Config config;
  std::unique_ptr<Membership> membership;  ///< with the parent, if the child shares its connections
  int number;                              ///< among the parent's children

  /// How long its ranks may wait for one another before those who have not come are named; 0: for ever.
  milliseconds reportAfter() const;
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

/// All but what sets it apart from other children of the same ranks: they agree on that as they meet.
CommIdentity identityOf(const Offspring& plan, int rank, int nRanks, int color, int key);

}  // namespace tutti::comm
