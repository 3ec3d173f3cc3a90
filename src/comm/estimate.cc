#include "comm/estimate.h"

#include "comm/communicator.h"
#include "comm/execute.h"

namespace tutti {

Result<double> estimateMicroseconds(ncclComm& comm, std::span<const Op> ops) {
  ASSIGN(const PlannedComm planned, planComm(comm, ops));
  return planned.plan.microseconds();
}

}  // namespace tutti
