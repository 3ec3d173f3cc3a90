// How a thread of the application waits for its device.
#pragma once

#include <sched.h>
#include <signal.h>

#include <cstdint>

#include "softgpu/device/engine.h"
#include "softgpu/device/machine.h"

namespace tutti::softgpu {

/// Signals are the application's and may need more stack than a fiber has: none arrive while this lives.
class SignalsOff {
 public:
  SignalsOff();
  ~SignalsOff();
  /// Lets those in that have come meanwhile.
  void letIn();
  SignalsOff(const SignalsOff&) = delete;
  SignalsOff& operator=(const SignalsOff&) = delete;

 private:
  sigset_t before_;
};

/// There is one engine in the process, and few processors: a second thread that looks for work takes turns with the one
/// that does it, however long that takes.
bool oneThreadIsEnough();

/// Gives the processor a moment, or yields it where the calling thread's YieldPace says so. `now` is Engine::now() or a
/// little earlier, `since` when the wait began. Moves the thread to another processor when this one is given to another
/// busy thread each time: threads that wait for each other and yield to each other can share one processor for a tenth
/// of a second while the next one is idle, for a scheduler that sees two short tasks sees nothing to balance.
void relaxOrYield(std::int64_t now, std::int64_t since);

/// True once done() is, which is soon; lends engines a hand meanwhile, and calls the hooks when kernels wait. False
/// when it is time to sleep.
template <class Done>
bool waitAwake(Done done) {
  constexpr std::int64_t kPatience = 100'000;  // ns without progress; a peer may be a process switch late
  constexpr std::int64_t kAlone = 1'000'000;   // where the engine's thread would but do the same instead
  constexpr std::int64_t kDeaf = 10'000'000;   // ns; with a long queue there is progress for minutes
  constexpr int kEager = 3;                    // what was just launched has run sooner than another thread is up
  if (done()) return true;
  SignalsOff off;
  Helper helper;
  IdleHooks& hooks = machine().idleHooks;
  bool reached = false;
  std::int64_t time = Engine::now();
  std::int64_t last = time;
  std::int64_t deafSince = time;
  const std::int64_t patience = oneThreadIsEnough() ? kAlone : kPatience;
  for (int i = 0; time - last < patience && !reached; ++i) {
    if (helper.help(nullptr, time, i < kEager) || hooks.turn()) {
      i = 0;
      last = time;
    } else {
      relaxOrYield(time, last);
    }
    reached = done();
    time = Engine::now();
    if (time - deafSince > kDeaf) {
      off.letIn();
      deafSince = time;
    }
  }
  helper.leave();
  hooks.leave();
  return reached;
}

}  // namespace tutti::softgpu
