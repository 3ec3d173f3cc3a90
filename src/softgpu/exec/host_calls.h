// Which functions of the application are queued and run, and which may be called no more (softgpu/withdrawal.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>

#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

/// Counts the calls of each host function, whichever thread makes them. Any thread, whatever locks it holds, except for
/// withdraw(), which waits.
class HostCalls {
 public:
  /// A call is on its way, of a stream or of a graph that was launched; forget() when it has been made or never will
  /// be. False where the function has been withdrawn already.
  bool expect(CUhostFn function);
  void forget(CUhostFn function);

  /// False where the function has been withdrawn: it must not be called. Otherwise end() after the call.
  bool begin(CUhostFn function);
  void end(CUhostFn function);

  enum class Withdrawal {
    Done,     ///< all calls that were expected have been made
    LeftOut,  ///< some never will be
    Running,  ///< one has not returned
    Inside,   ///< nothing was withdrawn: the calling thread is in a host function, and would wait for itself
  };
  /// From its return on no call of the function begins. Waits for the calls that are expected for `patience` at most,
  /// and then as long for those that run.
  Withdrawal withdraw(CUhostFn function, std::chrono::milliseconds patience);

 private:
  struct Calls {
    std::size_t expected = 0;
    std::size_t running = 0;
    bool withdrawn = false;
  };

  std::mutex lock_;
  std::condition_variable gone_;
  std::map<CUhostFn, Calls> calls_;  ///< functions are few; never erased
};

}  // namespace tutti::softgpu
