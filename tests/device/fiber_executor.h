// Runs host kernels beside the test's own thread: all blocks on fibers of one other thread. Where threads of a block
// need not be threads of the system (see launch.h) this spares the system thousands of them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "softgpu/exec/block.h"

namespace tutti::device::test {

/// The other thread. Any thread may start() kernels; it sleeps while there are none.
class FiberExecutor {
 public:
  static FiberExecutor& instance() {
    static FiberExecutor kInstance;
    return kInstance;
  }
  ~FiberExecutor() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// One kernel in flight; `blocksLeft` is 0 once it has ended.
  struct Ticket {
    softgpu::KernelOperation operation;
    std::uint32_t blocksLeft;
  };
  std::shared_ptr<Ticket> start(softgpu::KernelOperation operation) {
    auto ticket = std::make_shared<Ticket>(Ticket{std::move(operation), 0});
    ticket->blocksLeft = ticket->operation.blocks;
    const std::lock_guard lock(mutex_);
    arriving_.push_back(ticket);
    changed_.notify_all();
    return ticket;
  }
  void wait(const Ticket& ticket) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ticket.blocksLeft == 0; });
  }

 private:
  struct Resident {
    std::unique_ptr<softgpu::Block> block;
    std::shared_ptr<Ticket> ticket;
  };

  FiberExecutor() : thread_([this] { run(); }) {}

  void run() {
    softgpu::StackPool stacks;
    std::list<Resident> residents;
    while (admit(residents, stacks)) {
      bool progress = false;
      for (auto at = residents.begin(); at != residents.end();) {
        progress |= at->block->runPass(nullptr);
        if (const std::string* why = at->block->trapped()) {
          std::fprintf(stderr, "a kernel trapped: %s\n", why->c_str());
          std::abort();
        }
        at = at->block->finished() ? retire(residents, at) : std::next(at);
      }
      if (!progress) std::this_thread::yield();  // they wait for the test's thread
    }
  }

  /// Makes blocks of the kernels that were started; without any, waits for some. False at the end.
  bool admit(std::list<Resident>& residents, softgpu::StackPool& stacks) {
    std::unique_lock lock(mutex_);
    if (residents.empty()) changed_.wait(lock, [&] { return ending_ || !arriving_.empty(); });
    for (const auto& ticket : std::exchange(arriving_, {})) {
      for (std::uint32_t b = 0; b < ticket->operation.blocks; ++b) {
        residents.push_back({std::make_unique<softgpu::Block>(ticket->operation, b, stacks), ticket});
      }
    }
    return !residents.empty();
  }

  std::list<Resident>::iterator retire(std::list<Resident>& residents, std::list<Resident>::iterator ended) {
    const std::shared_ptr<Ticket> ticket = ended->ticket;
    const auto next = residents.erase(ended);
    const std::lock_guard lock(mutex_);
    if (--ticket->blocksLeft == 0) changed_.notify_all();
    return next;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Ticket>> arriving_;
  bool ending_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

/// A kernel in flight; the destructor waits for it.
class FiberLaunch {
 public:
  template <class Params>
  FiberLaunch(const simt::HostKernel& kernel, std::uint32_t nBlocks, std::uint32_t nThreads, const Params& params) {
    ticket_ =
        FiberExecutor::instance().start({&kernel, softgpu::copyParams(&params, sizeof(Params)), nBlocks, nThreads, 0});
  }
  ~FiberLaunch() { FiberExecutor::instance().wait(*ticket_); }
  FiberLaunch(const FiberLaunch&) = delete;
  FiberLaunch& operator=(const FiberLaunch&) = delete;

 private:
  std::shared_ptr<FiberExecutor::Ticket> ticket_;
};

}  // namespace tutti::device::test
