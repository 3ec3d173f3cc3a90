// What all ranks call in a group, compared before anything of it is launched (TUTTI_CHECK_CALLS).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/ranks/control_channel.h"
#include "base/status.h"
#include "comm/diagnosis/call_words.h"

struct ncclComm;

namespace tutti::comm {

/// Collective over the ranks of `comm`, outside of any other exchange of its: compares their calls.
/// ncclInvalidUsage on all ranks alike, where they differ, naming two ranks and their calls. Where a rank has left
/// in place of calling, the communicator fails, naming it and the first of these calls. Other errors: the bootstrap's.
Status compareGroup(ncclComm& comm, std::span<const Call> calls);

/// The same with calls, of which the communicator had `before`. `describe`: a rank for messages.
Status compareGroup(ControlChannel& channel, std::span<const Call> calls, std::uint64_t before,
                    const std::function<std::string(int)>& describe);

}  // namespace tutti::comm
