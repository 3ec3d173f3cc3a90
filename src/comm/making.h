// What all ways to make a communicator share.
#pragma once

#include <memory>

#include "base/status.h"
#include "comm/init/join_stage.h"
#include "comm/settings/config.h"
#include "comm/state/progress.h"
#include "nccl.h"

struct ncclComm;

namespace tutti::comm {

struct CommIdentity;
struct CommSettings;

/// The configuration of a communicator that is made now: the user's, or, where there is none, that of `parent`, or the
/// defaults; the environment above it. `user`, `parent`: may be null.
Result<Config> configOf(const ncclConfig_t* user, const Config* parent, const CommSettings& settings);

/// The object; nothing that could wait.
std::unique_ptr<ncclComm> makeComm(CommIdentity identity, Config config, std::shared_ptr<const CommSettings> settings);

/// Shows the handle at `place` and inits it: now, at the group's end, or in the background. `plain`: as
/// InitRequest::plain.
Result<Progress> startInit(std::unique_ptr<ncclComm> made, ncclComm_t* place, JoinStep join, bool plain);

}  // namespace tutti::comm
