// How a thread of the application waits for its device.
#pragma once

#include <sched.h>
#include <signal.h>

#include "softgpu/core/engine.h"
#include "softgpu/core/machine.h"

namespace tutti::softgpu {

/// Signals are the application's and may need more stack than a fiber has: none arrive while this lives.
class SignalsOff {
 public:
  SignalsOff();
  ~SignalsOff();
  SignalsOff(const SignalsOff&) = delete;
  SignalsOff& operator=(const SignalsOff&) = delete;

 private:
  sigset_t before_;
};

/// True once done() is, which is soon; lends engines a hand meanwhile. False when it is time to sleep.
template <class Done>
bool waitAwake(Done done) {
  constexpr int kYields = 20;
  constexpr int kEager = 3;  // what was just launched has run sooner than another thread is up
  if (done()) return true;
  const SignalsOff off;
  Helper helper;
  bool reached = false;
  for (int i = 0; i < kYields && !reached; ++i) {
    if (helper.help(nullptr, Engine::now(), i < kEager)) {
      i = 0;
    } else {
      ::sched_yield();
    }
    reached = done();
  }
  helper.leave();
  return reached;
}

}  // namespace tutti::softgpu
