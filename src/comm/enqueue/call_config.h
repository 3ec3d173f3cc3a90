// ncclCollConfig_t read and checked: the options of one collective.
#pragma once

#include <string_view>

#include "base/status.h"
#include "comm/plan/op.h"
#include "nccl.h"

struct ncclComm;

namespace tutti::comm {

/// Adds to `op` what `config` says, a struct of any version by its own size. Options without effect are named once in
/// the log. `label`: "AllReduceConfig". ncclInvalidArgument with the field and what it may be.
Status applyCallConfig(const ncclComm& comm, const ncclCollConfig_t& config, std::string_view label, Op& op);

}  // namespace tutti::comm
