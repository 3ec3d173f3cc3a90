// Threads of the library: named on request, joined by their owner.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/status.h"

namespace tutti {

/// Owns one running thread and joins it when destroyed or assigned to. The body must end soon after its owner asks it
/// to (an Abort, a closed socket); nothing here can interrupt it. All signals are blocked in it, so that the
/// application's handlers run on the application's threads.
class Thread {
 public:
  Thread() = default;
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }

  /// Starts `body`, which must not throw. `name` is given to the kernel only where NCCL_SET_THREAD_NAME=1 (cut to 15
  /// characters); where it is "" no setting is read. Errors: ncclSystemError with the thread's name where the system
  /// has no more threads.
  static Result<Thread> start(const std::string& name, std::function<void()> body);

  bool running() const { return thread_.joinable(); }
  /// Waits for the body to end. Harmless when nothing runs.
  void join();
  /// Lets the thread go on by itself: only for bodies that own everything they touch.
  void detach();

 private:
  std::thread thread_;
};

/// Names the calling thread where NCCL_SET_THREAD_NAME=1. "": does nothing.
void nameThisThread(const std::string& name);

/// Not 0, and another one on each thread that lives.
inline std::uint64_t threadNumber() {
  thread_local const char place = 0;
  return reinterpret_cast<std::uintptr_t>(&place);
}

}  // namespace tutti
