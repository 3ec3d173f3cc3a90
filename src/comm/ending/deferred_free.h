// Memory of a communicator that cannot be freed yet, since another one's kernels run on its device.
#pragma once

#include <functional>

namespace tutti::comm {

/// The driver frees memory of a device only when all kernels that run there are done. If one of them waits for a rank
/// that is gone, and its communicator is aborted only after this one, the abort of this one would wait for ever. So
/// calls `free` now if `device` runs no kernels of other communicators within a second, and otherwise on a thread of
/// its own, once it runs none. `free` owns all that it touches. Without a thread for it: now.
void freeWhenOthersRest(int device, std::function<void()> free);

}  // namespace tutti::comm
