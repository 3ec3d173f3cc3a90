#include "comm/enqueue/estimate.h"

#include <algorithm>

#include "comm/enqueue/comm_work.h"
#include "comm/plan/plan.h"

namespace tutti::comm {

Result<double> estimateMicroseconds(const GroupWork& work) {
  double slowest = -1;
  Status status;
  for (const auto& one : work.comms()) {
    const Status planned = one->plan();
    if (!planned.ok()) status = planned;
    if (planned.ok()) slowest = std::max(slowest, one->planned().microseconds());
  }
  TRY(status);
  return slowest;
}

}  // namespace tutti::comm
