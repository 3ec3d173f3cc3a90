// Runs host kernels without the software GPU: one std::thread per CUDA thread. Slow and simple, with real concurrency:
// what a sanitizer finds here is real. Warp operations that no kernel uses yet are not offered.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "device/simt_host_abi.h"

namespace tutti::device::test {

inline const simt::HostKernel* findKernel(std::string_view name) {
  const simt::HostKernelTable* table = tuttiHostKernels();
  for (std::uint32_t i = 0; i < table->count; ++i) {
    if (name == table->kernels[i].name) return &table->kernels[i];
  }
  return nullptr;
}

/// One block: shared memory and its barriers.
class ThreadBlock {
 public:
  explicit ThreadBlock(std::uint32_t sharedBytes) : shared_((sharedBytes + 15) / 16 * 2) {}

  void* shared() { return shared_.data(); }

  void arrive(std::uint32_t id, std::uint32_t n) {
    std::unique_lock lock(mutex_);
    Barrier& barrier = barriers_[id];
    const std::uint64_t generation = barrier.generation;
    if (++barrier.arrived == n) {
      barrier.arrived = 0;
      ++barrier.generation;
      all_.notify_all();
      return;
    }
    all_.wait(lock, [&] { return barrier.generation != generation; });
  }

 private:
  struct Barrier {
    std::uint32_t arrived = 0;
    std::uint64_t generation = 0;
  };
  std::vector<std::uint64_t> shared_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::map<std::uint32_t, Barrier> barriers_;
};

inline const simt::HostOps& threadOps() {
  static const simt::HostOps kOps{
      .barrier = [](simt::HostThread* t, std::uint32_t id,
                    std::uint32_t n) { static_cast<ThreadBlock*>(t->scheduler)->arrive(id, n); },
      .warpSync = [](simt::HostThread*) { std::abort(); },
      .shuffle = [](simt::HostThread*, std::uint64_t, std::uint32_t) -> std::uint64_t { std::abort(); },
      .ballot = [](simt::HostThread*, bool) -> std::uint32_t { std::abort(); },
      .pause = [](simt::HostThread*, bool) { std::this_thread::yield(); },
      .trap = [](simt::HostThread*, const char*) { std::abort(); },
  };
  return kOps;
}

/// A kernel in flight; the destructor waits for it.
class ThreadLaunch {
 public:
  template <class Params>
  ThreadLaunch(const simt::HostKernel& kernel, std::uint32_t nBlocks, std::uint32_t nThreads, const Params& params)
      : params_(sizeof(Params)) {
    std::memcpy(params_.data(), &params, sizeof(Params));
    for (std::uint32_t b = 0; b < nBlocks; ++b) {
      blocks_.push_back(std::make_unique<ThreadBlock>(kernel.staticSharedBytes));
      for (std::uint32_t i = 0; i < nThreads; ++i) {
        contexts_.push_back(std::make_unique<simt::HostThread>(simt::HostThread{
            &threadOps(), blocks_.back()->shared(), i, nThreads, b, nBlocks, blocks_.back().get()}));
      }
    }
    for (auto& context : contexts_) {
      threads_.emplace_back([this, &kernel, self = context.get()] { kernel.entry(self, params_.data()); });
    }
  }
  ~ThreadLaunch() {
    for (auto& thread : threads_) thread.join();
  }
  ThreadLaunch(const ThreadLaunch&) = delete;
  ThreadLaunch& operator=(const ThreadLaunch&) = delete;

 private:
  std::vector<std::byte> params_;  // new aligns for 16-byte structs
  std::vector<std::unique_ptr<ThreadBlock>> blocks_;
  std::vector<std::unique_ptr<simt::HostThread>> contexts_;
  std::vector<std::thread> threads_;
};

}  // namespace tutti::device::test
