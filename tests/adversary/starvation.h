// Whether the system lets this process run. On a crowded machine all threads of a process may be ready and yet get no
// processor for seconds; its peers then call it silent, which is true and no fault of the library's.
#pragma once

#include <thread>

namespace tutti::adversary {

/// Reports "starved MS" whenever its thread, which runs nothing of the library, was ready for more than a second and
/// did not run, by the kernel's own account (/proc/thread-self/schedstat); also for the time before it was made. A
/// process that is stopped, or waits for a lock, is not ready.
class StarvationWatch {
 public:
  StarvationWatch();

 private:
  std::jthread thread_;
};

}  // namespace tutti::adversary
