// Memory of a communicator that cannot be freed yet, since other communicators' kernels run.
#pragma once

#include <functional>

namespace tutti::comm {

/// The driver frees memory of a device only when all kernels that run there are done, and what a rank frees may lie on
/// the device of another rank of the process. If one of these kernels waits for the rank that frees, or for one that is
/// gone and whose communicator is given up only after this one, freeing would wait for ever. So where there are other
/// communicators in this process, or graphs that outlive theirs, `free` runs on a thread of its own once none of their
/// kernels run, and the caller waits for it for a quarter of a second at most. `free` owns all that it touches. Without
/// a thread for it: now. When the process ends by exit() before that, nothing is freed any more.
void freeWhenOthersRest(std::function<void()> free);

/// The same for what graphs have left behind by now (GraphRefs).
void freeAbandoned();

}  // namespace tutti::comm
