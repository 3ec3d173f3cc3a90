#include "comm/making.h"

#include <utility>

#include "comm/ending/ending.h"
#include "comm/enqueue/group.h"
#include "comm/enqueue/group_work.h"
#include "comm/enqueue/start_job.h"
#include "comm/init/comm_options.h"
#include "comm/init/init.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

Result<Config> configOf(const ncclConfig_t* user, const Config* parent, const CommSettings& settings) {
  ncclConfig_t environment = settings.configOverrides;
  if (!settings.netName.empty()) environment.netName = settings.netName.c_str();
  if (user == nullptr && parent != nullptr) return inheritConfig(*parent, environment);
  return parseConfig(user, environment);
}

std::unique_ptr<ncclComm> makeComm(CommIdentity identity, Config config, std::shared_ptr<const CommSettings> settings) {
  CommOptions options = optionsFrom(*settings);
  return std::make_unique<ncclComm>(std::move(identity), std::move(config), std::move(settings), std::move(options));
}

Result<Progress> startInit(std::unique_ptr<ncclComm> made, ncclComm_t* place, JoinStep join, bool plain) {
  if (GroupWork* group = openGroup()) TRY(group->admit(*made));
  ncclComm* const comm = made.release();  // the application owns it from here on
  // Taken before the handle is shown: another thread may abort it at once, and must wait for the init to leave.
  auto pass = std::make_shared<CallGate::Pass>(*comm->gate);
  *place = comm;
  auto mayDrop = std::make_shared<bool>(false);
  const bool dropFailed = plain && groupDepth() == 0;
  auto body = [comm, pass = std::move(pass), mayDrop, dropFailed, join = std::move(join)] {
    const Status status = runInit(*comm, join);
    // From here on the communicator is ours to free, unless somebody is aborting it already.
    if (!status.ok() && dropFailed) *mayDrop = !comm->progress.ending.exchange(true);
    return status;
  };
  Result<Progress> started = startJob(*comm, JobKind::Init, std::move(body), plain);
  if (*mayDrop) {
    *place = nullptr;
    endFailedInit(comm);
  }
  return started;
}

}  // namespace tutti::comm
