// Carrying out one communicator's planned operations: connect what is missing, then launch.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "comm/operations.h"
#include "comm/plan.h"

namespace tutti {

/// One communicator's part of a group, planned. While it is there, nobody frees the communicator.
struct PlannedComm {
  ncclComm* comm;
  CallGate::Pass pass;
  Plan plan;
  std::vector<const LoadedKernel*> kernels;   ///< one per launch of the plan, once loadKernels() was there
};

/// Plans; errors are the caller's mistakes and leave the communicator as it was.
Result<PlannedComm> planComm(ncclComm& comm, std::span<const Op> ops);

/// Connections that the plan uses and that are not open yet.
std::vector<LinkRequest> missingLinks(const PlannedComm& planned);

/// Opens them; waits for these peers to do the same.
Status connectMissing(const PlannedComm& planned);

/// Loads the kernels of the plan. Loading may wait for the device, so all communicators of a group do it before the
/// first of them launches.
Status loadKernels(PlannedComm& planned);

/// Puts all kernels on the streams; never waits.
Status launchPlanned(const PlannedComm& planned);

}  // namespace tutti
