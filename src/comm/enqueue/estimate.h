// How long a group would take, for ncclGroupSimulateEnd.
#pragma once

#include "base/status.h"
#include "comm/enqueue/group_work.h"

namespace tutti::comm {

/// Microseconds that the operations of `work` would take by the tuner's model: communicators run side by side, so the
/// slowest decides, with its launches one after another. -1 where nothing would be launched. Fails as planning them
/// would.
Result<double> estimateMicroseconds(const GroupWork& work);

}  // namespace tutti::comm
