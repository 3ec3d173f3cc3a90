// How a child that is planned (offspring.h) comes into being.
#pragma once

#include <functional>

#include "base/status.h"
#include "comm/state/progress.h"

struct ncclComm;

namespace tutti {
class Abort;
}
namespace tutti::bootstrap {
struct Kin;
}

namespace tutti::comm {

struct CommIdentity;
struct Offspring;

/// How the ranks of a child come to know each other. The Abort is the child's.
using Meeting = std::function<Result<bootstrap::Kin>(const Abort& abort)>;

/// Inits the child and shows it. A failure is told where the call can return it; else the child's state has it.
Status bear(Offspring& plan, CommIdentity identity, const Meeting& meet);

/// The job of one child, under the name of its call.
Result<Progress> startBirth(ncclComm& parent, const char* function, std::function<Status()> making);

}  // namespace tutti::comm
