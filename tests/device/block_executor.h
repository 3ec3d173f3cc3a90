// Runs host kernels in the calling thread on the software GPU's own blocks and fibers: every switch and every moment at
// which a store becomes visible follows from two seeds, and a kernel that waits for ever is found out.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "softgpu/exec/block.h"
#include "softgpu/exec/random.h"
#include "softgpu/exec/weak_memory.h"

namespace tutti::device::test {

class BlockExecutor {
 public:
  struct Seeds {
    std::optional<std::uint64_t> schedule;  ///< none: in turn
    std::optional<std::uint64_t> weak;      ///< none: stores are visible at once
  };

  explicit BlockExecutor(const Seeds& seeds) {
    if (seeds.schedule) schedule_.emplace(*seeds.schedule);
    if (seeds.weak) weak_.emplace(*seeds.weak);
  }

  /// All launches run side by side, as on devices of their own. `onEnd` is called when all blocks have ended.
  template <class Params>
  void launch(const simt::HostKernel& kernel, std::uint32_t nBlocks, std::uint32_t nThreads, const Params& params,
              std::function<void()> onEnd = {}) {
    const std::shared_ptr<void> end(nullptr, [onEnd = std::move(onEnd)](void*) {
      if (onEnd) onEnd();
    });
    const softgpu::KernelOperation operation{&kernel, softgpu::copyParams(&params, sizeof(Params)), nBlocks, nThreads,
                                             0};
    for (std::uint32_t b = 0; b < nBlocks; ++b) {
      std::unique_ptr<softgpu::WeakMemory> memory;
      if (weak_) memory = std::make_unique<softgpu::WeakMemory>(weak_->next(), nThreads);
      blocks_.push_back({std::make_unique<softgpu::Block>(operation, b, stacks(), std::move(memory)), end});
    }
  }

  /// Until every block has ended; false if they do nothing but poll for so long that none ever will, or one trapped.
  /// `between` is called after each round of the blocks and says whether it did anything for them.
  bool run(const std::function<bool()>& between = {}) {
    constexpr unsigned kMostIdleRounds = 20000;
    for (unsigned idle = 0; !blocks_.empty() && idle < kMostIdleRounds; ++idle) {
      bool progress = false;
      for (std::size_t turn = blocks_.size(); turn-- > 0;) {
        const std::size_t at = schedule_ ? schedule_->below(blocks_.size()) : turn;
        if (at >= blocks_.size()) continue;
        softgpu::Block& block = *blocks_[at].block;
        if (block.runPass(schedule_ ? &*schedule_ : nullptr)) progress = true;
        if (block.trapped() != nullptr) return false;
        if (block.finished()) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
        if (blocks_.empty()) break;
      }
      if (between && between()) progress = true;
      if (progress) idle = 0;
    }
    return blocks_.empty();
  }

 private:
  struct Resident {
    std::unique_ptr<softgpu::Block> block;
    std::shared_ptr<void> end;  ///< shared by the blocks of a launch
  };

  /// Kept from run to run: mapping stacks would take longer than the kernels.
  static softgpu::StackPool& stacks() {
    static thread_local softgpu::StackPool kStacks;
    return kStacks;
  }

  std::optional<softgpu::Random> schedule_;
  std::optional<softgpu::Random> weak_;
  std::vector<Resident> blocks_;
};

}  // namespace tutti::device::test
