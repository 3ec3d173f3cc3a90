#include "softgpu/core/callback_thread.h"

#include <signal.h>

#include <thread>

#include "softgpu/core/engine.h"

namespace tutti::softgpu {

void CallbackThread::start() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { loop(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CallbackThread::post(const HostOperation& call, std::shared_ptr<std::atomic<bool>> done) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    calls_.push_back({call, std::move(done)});
  }
  posted_.notify_one();
}

void CallbackThread::loop() {
  for (;;) {
    Call next;
    {
      std::unique_lock<std::mutex> guard(lock_);
      posted_.wait(guard, [this] { return !calls_.empty(); });
      next = std::move(calls_.front());
      calls_.pop_front();
    }
    next.call.function(next.call.data);
    next.done->store(true, std::memory_order_release);
    engine_.wake();
  }
}

}  // namespace tutti::softgpu
