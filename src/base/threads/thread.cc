#include "base/threads/thread.h"

#include <pthread.h>
#include <signal.h>

#include <new>
#include <system_error>

#include "base/log.h"
#include "base/settings/params.h"

namespace tutti {

namespace {

/// Blocks all signals while it lives; threads started meanwhile inherit that.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    join();
    thread_ = std::move(other.thread_);
  }
  return *this;
}

Result<Thread> Thread::start(const std::string& name, std::function<void()> body) {
  const SignalsBlocked blocked;
  try {
    Thread thread;
    thread.thread_ = std::thread([name, body = std::move(body)] {
      nameThisThread(name);
      body();
    });
    return thread;
  } catch (const std::system_error& e) {
    return fail(ncclSystemError,
                "Starting thread \"{}\" failed: {}. Likely a limit on processes or memory: see ulimit -u and the "
                "pids limit of the container",
                name, errnoText(e.code().value()));
  } catch (const std::bad_alloc&) {
    return fail(ncclSystemError,
                "Starting thread \"{}\" failed: the process has no host memory left: see ulimit -v and the memory "
                "limit of the container",
                name);
  }
}

void Thread::join() {
  if (thread_.joinable()) thread_.join();
}

void Thread::detach() {
  if (thread_.joinable()) thread_.detach();
}

void nameThisThread(const std::string& name) {
  constexpr std::size_t kKernelLimit = 15;
  if (name.empty() || !Params::process().misc.setThreadName) return;
  ::pthread_setname_np(::pthread_self(), name.substr(0, kKernelLimit).c_str());
}

}  // namespace tutti
