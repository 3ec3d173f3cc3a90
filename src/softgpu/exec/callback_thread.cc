#include "softgpu/exec/callback_thread.h"

#include <signal.h>

#include <thread>
#include <utility>

namespace tutti::softgpu {

void CallbackThread::start() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { loop(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CallbackThread::post(HostCalls& calls, const HostOperation& call, std::function<void()> after) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    calls_.push_back({&calls, call, std::move(after)});
    if (!std::exchange(started_, true)) start();
  }
  posted_.notify_one();
}

void CallbackThread::loop() {
  for (;;) {
    Call next{};
    {
      std::unique_lock<std::mutex> guard(lock_);
      posted_.wait(guard, [this] { return !calls_.empty(); });
      next = std::move(calls_.front());
      calls_.pop_front();
    }
    if (next.calls->begin(next.call.function)) {
      next.call.function(next.call.data);
      next.calls->end(next.call.function);
    }
    if (next.after) next.after();
  }
}

}  // namespace tutti::softgpu
