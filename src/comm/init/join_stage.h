// The stage of init in which the ranks find each other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "nccl.h"

struct ncclComm;

namespace tutti::bootstrap {
class Bootstrap;
struct JoinOptions;
}  // namespace tutti::bootstrap

namespace tutti::comm {

/// How a rank comes to its place among the others; what of the options depends on that is set here. Collective.
using JoinStep = std::function<Result<std::unique_ptr<bootstrap::Bootstrap>>(bootstrap::JoinOptions& options)>;

/// Through the roots of these ids.
JoinStep joinByIds(std::vector<ncclUniqueId> ids);

/// Collective. From now on peers hear how this rank fares, and it of them. Errors: the bootstrap's.
Status joinBootstrap(ncclComm& comm, const JoinStep& join);

}  // namespace tutti::comm
