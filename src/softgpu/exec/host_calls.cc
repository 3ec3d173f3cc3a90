#include "softgpu/exec/host_calls.h"

namespace tutti::softgpu {
namespace {

thread_local bool insideCall = false;

}  // namespace

bool HostCalls::expect(CUhostFn function) {
  const std::lock_guard<std::mutex> guard(lock_);
  Calls& calls = calls_[function];
  ++calls.expected;
  return !calls.withdrawn;
}

void HostCalls::forget(CUhostFn function) {
  const std::lock_guard<std::mutex> guard(lock_);
  if (--calls_[function].expected == 0) gone_.notify_all();
}

bool HostCalls::begin(CUhostFn function) {
  const std::lock_guard<std::mutex> guard(lock_);
  Calls& calls = calls_[function];
  if (calls.withdrawn) return false;
  ++calls.running;
  insideCall = true;
  return true;
}

void HostCalls::end(CUhostFn function) {
  insideCall = false;
  const std::lock_guard<std::mutex> guard(lock_);
  if (--calls_[function].running == 0) gone_.notify_all();
}

HostCalls::Withdrawal HostCalls::withdraw(CUhostFn function, std::chrono::milliseconds patience) {
  if (insideCall) return Withdrawal::Inside;
  std::unique_lock<std::mutex> guard(lock_);
  Calls& calls = calls_[function];
  const bool all = gone_.wait_for(guard, patience, [&calls] { return calls.expected == 0 && calls.running == 0; });
  calls.withdrawn = true;
  if (all) return Withdrawal::Done;
  const bool quiet = gone_.wait_for(guard, patience, [&calls] { return calls.running == 0; });
  return quiet ? Withdrawal::LeftOut : Withdrawal::Running;
}

}  // namespace tutti::softgpu
