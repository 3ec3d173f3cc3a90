#include "comm/enqueue/start_job.h"

#include <utility>

#include "comm/enqueue/group.h"
#include "comm/enqueue/run_group.h"

namespace tutti::comm {

Result<Progress> startJob(ncclComm& comm, JobKind kind, std::function<Status()> body, bool wait) {
  Job job{&comm, kind, std::move(body)};
  if (GroupWork* group = openGroup()) {
    TRY(group->add(std::move(job)));
    return Progress::Done;
  }
  GroupWork alone;
  alone.forceBlocking = wait;
  TRY(alone.add(std::move(job)));
  return runGroup(alone);
}

}  // namespace tutti::comm
