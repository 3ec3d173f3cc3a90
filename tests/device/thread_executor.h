// Runs host kernels without the software GPU: one std::thread per CUDA thread. Slow and simple, with real concurrency:
// what a sanitizer finds here is real.
#pragma once

#include <algorithm>
#include <array>
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

#include "device/simt/simt_host_abi.h"

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
  ThreadBlock(std::uint32_t sharedBytes, std::uint32_t nThreads)
      : shared_((sharedBytes + 15) / 16 * 2), nThreads_(nThreads), warps_((nThreads + 31) / 32) {}

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

  /// Warp-wide: gives everybody what all lanes brought.
  std::array<std::uint64_t, 32> exchange(std::uint32_t thread, std::uint64_t value) {
    Warp& warp = warps_[thread / 32];
    const std::uint32_t lanes = std::min(32u, nThreads_ - thread / 32 * 32);
    std::unique_lock lock(warp.mutex);
    warp.brought[thread % 32] = value;
    const std::uint64_t generation = warp.generation;
    if (++warp.arrived == lanes) {
      warp.arrived = 0;
      warp.given = warp.brought;
      ++warp.generation;
      warp.all.notify_all();
    } else {
      warp.all.wait(lock, [&] { return warp.generation != generation; });
    }
    return warp.given;  // the next round cannot end before this lane has joined it
  }

 private:
  struct Barrier {
    std::uint32_t arrived = 0;
    std::uint64_t generation = 0;
  };
  struct Warp {
    std::mutex mutex;
    std::condition_variable all;
    std::array<std::uint64_t, 32> brought{}, given{};
    std::uint32_t arrived = 0;
    std::uint64_t generation = 0;
  };
  std::vector<std::uint64_t> shared_;
  std::uint32_t nThreads_;
  std::vector<Warp> warps_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::map<std::uint32_t, Barrier> barriers_;
};

inline ThreadBlock& blockOf(simt::HostThread* t) {
  return *static_cast<ThreadBlock*>(t->scheduler);
}

inline const simt::HostOps& threadOps() {
  static const simt::HostOps kOps{
      .barrier = [](simt::HostThread* t, std::uint32_t id, std::uint32_t n) { blockOf(t).arrive(id, n); },
      .warpSync = [](simt::HostThread* t) { blockOf(t).exchange(t->thread, 0); },
      .shuffle = [](simt::HostThread* t, std::uint64_t value,
                    std::uint32_t lane) { return blockOf(t).exchange(t->thread, value)[lane]; },
      .ballot = [](simt::HostThread* t, bool predicate) -> std::uint32_t {
        const auto votes = blockOf(t).exchange(t->thread, predicate ? 1 : 0);
        std::uint32_t bits = 0;
        for (std::uint32_t lane = 0; lane < 32; ++lane) bits |= static_cast<std::uint32_t>(votes[lane]) << lane;
        return bits;
      },
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
      blocks_.push_back(std::make_unique<ThreadBlock>(kernel.staticSharedBytes, nThreads));
      for (std::uint32_t i = 0; i < nThreads; ++i) {
        contexts_.push_back(std::make_unique<simt::HostThread>(
            simt::HostThread{&threadOps(), blocks_.back()->shared(), i, nThreads, b, nBlocks, blocks_.back().get()}));
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
