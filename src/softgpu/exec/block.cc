#include "softgpu/exec/block.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "softgpu/exec/weak_memory.h"

namespace tutti::softgpu {

const simt::HostOps Block::kOps = {
    Block::barrier,  Block::warpSync,      Block::shuffle,      Block::ballot,   Block::pause,      Block::trap,
    Block::exchange, Block::barrierArrive, Block::barrierCount, Block::together, Block::activeMask,
};

std::size_t Block::sharedWords(const KernelOperation& kernel) {
  return kernel.sharedBytes() / sizeof(std::max_align_t) + 1;
}

Block::Block(const KernelOperation& kernel, std::uint32_t index, StackPool& stacks, std::unique_ptr<WeakMemory> memory)
    : kernel_(kernel),
      stacks_(stacks),
      fibers_(kernel.threads),
      shared_(sharedWords(kernel)),
      warps_((kernel.threads + 31) / 32),
      memory_(std::move(memory)) {
  runnable_.reserve(fibers_.size());
  paused_.reserve(fibers_.size());
  for (Fiber& fiber : fibers_) {
    const Stack stack = stacks_.take(kernel.threads);
    if (stack.lowest == nullptr) return;
    fiber.context.own(stack);
  }
  ready_ = true;
  begin(index);
}

Block::Block(const KernelOperation& kernel, std::uint32_t index, StackPool& stacks)
    : Block(kernel, index, stacks, nullptr) {}

Block::~Block() {
  for (auto fiber = fibers_.rbegin(); fiber != fibers_.rend(); ++fiber) {
    const Stack& stack = fiber->context.stack();
    if (stack.lowest == nullptr) continue;
    if (trapped_ != nullptr) stack.forgetOverflow();
    stacks_.give(stack);
  }
}

std::unique_ptr<WeakMemory> Block::takeMemory() {
  return std::move(memory_);
}

bool Block::storesPending() const {
  return memory_ != nullptr && !memory_->empty();
}

bool Block::fits(const KernelOperation& kernel) const {
  return fibers_.size() == kernel.threads && shared_.size() == sharedWords(kernel);
}

void Block::restart(const KernelOperation& kernel, std::uint32_t index, std::unique_ptr<WeakMemory> memory) {
  kernel_ = kernel;
  memory_ = std::move(memory);
  exited_ = 0;
  begin(index);
}

void Block::rest() {
  memory_.reset();
  kernel_.params.reset();
  kernel_.code.reset();
}

/// Every thread is about to begin.
void Block::begin(std::uint32_t index) {
  // As on a GPU, where nobody clears it.
  if (memory_ != nullptr) std::memset(shared_.data(), 0xa5, shared_.size() * sizeof(std::max_align_t));
  for (Warp& warp : warps_) {
    warp.alive = 0;
    warp.votes[0] = warp.votes[1] = 0;
    warp.present[0] = warp.present[1] = 0;
    warp.absent = ~0u;
    warp.exchanges.clear();
  }
  // Who arrives without waiting leaves an arrival behind where nobody else came.
  for (Barrier& barrier : barriers_) {
    barrier.votes = 0;
    barrier.passed.clear();
  }
  shape_ = kernel_.shape();
  for (std::uint32_t i = 0; i < kernel_.threads; ++i) {
    Fiber& fiber = fibers_[i];
    fiber.block = this;
    fiber.exited = false;
    fiber.thread = {&kOps,   shared_.data(),     i,      kernel_.threads,
                    index,   kernel_.blocks,     &fiber, memory_ == nullptr ? nullptr : WeakMemory::operations(),
                    &shape_, kernel_.variables()};
    fiber.context.start(run, &fiber);
    runnable_.push_back(&fiber);
    warps_[i / 32].alive++;
    warps_[i / 32].absent &= ~(1u << i % 32);
  }
}

void Block::run(void* argument) {
  Fiber& fiber = *static_cast<Fiber*>(argument);
  Block& block = *fiber.block;
  block.kernel_.kernel->entry(&fiber.thread, block.kernel_.params.get());
  block.threadEnded(fiber);
  fiber.context.leaveForGood(block.scheduler_);
}

void Block::enter(Fiber& fiber) {
  if (memory_ != nullptr) {
    const Stack& stack = fiber.context.stack();
    memory_->enter(fiber.thread.thread, stack.lowest, stack.size);
  }
  fiber.context.enter(scheduler_);
}

bool Block::runPass(Random* random) {
  progressed_ = false;
  if (memory_ != nullptr) memory_->drift();
  runnable_.insert(runnable_.end(), paused_.begin(), paused_.end());
  paused_.clear();
  std::size_t next = 0;
  do {
    for (; next < runnable_.size(); ++next) {
      if (random != nullptr) std::swap(runnable_[next], runnable_[next + random->below(runnable_.size() - next)]);
      enter(*runnable_[next]);
      if (trapped_ != nullptr) return true;
    }
    // Only now have all lanes come that can.
  } while (linesWait_ && goOnTogether(random));
  if (trapped_ != nullptr) return true;
  if (finished()) checkStacks();
  runnable_.clear();
  return progressed_;
}

void Block::wake(std::vector<Fiber*>& waiting) {
  runnable_.insert(runnable_.end(), waiting.begin(), waiting.end());
  waiting.clear();
  progressed_ = true;
}

/// Stacks without guard pages are looked at when the block has ended.
void Block::checkStacks() {
  for (const Fiber& fiber : fibers_) {
    if (!fiber.context.stack().overflown()) continue;
    trapped_ = std::make_unique<std::string>("the stack of thread " + std::to_string(fiber.thread.thread) +
                                             " overflowed; memory of other threads was overwritten");
    return;
  }
}

void Block::threadEnded(Fiber& fiber) {
  fiber.exited = true;
  progressed_ = true;
  ++exited_;
  if (memory_ != nullptr && finished()) memory_->flush();
  laneEnded(warpOf(fiber), fiber.thread.thread % 32);
  Barrier& whole = barriers_[0];
  if (!whole.waiting.empty() && barrierMet(whole, 0)) releaseBarrier(whole, nullptr);
}

void Block::pause(simt::HostThread* self, bool again) {
  Fiber& fiber = fiberOf(self);
  if (!again) fiber.block->progressed_ = true;
  fiber.block->paused_.push_back(&fiber);
  fiber.context.leave(fiber.block->scheduler_);
}

void Block::trap(simt::HostThread* self, const char* message) {
  Fiber& fiber = fiberOf(self);
  fiber.block->trapped_ = std::make_unique<std::string>(message == nullptr ? "" : message);
  fiber.context.leaveForGood(fiber.block->scheduler_);
}

std::unique_ptr<Block> BlockPool::take(const KernelOperation& kernel, std::uint32_t index, StackPool& stacks,
                                       std::unique_ptr<WeakMemory> memory) {
  const auto found = std::find_if(free_.rbegin(), free_.rend(), [&](const auto& block) { return block->fits(kernel); });
  if (found != free_.rend()) {
    std::unique_ptr<Block> block = std::move(*found);
    free_.erase(std::next(found).base());
    threads_ -= block->threads();
    block->restart(kernel, index, std::move(memory));
    return block;
  }
  auto block = std::make_unique<Block>(kernel, index, stacks, std::move(memory));
  if (block->ready() || free_.empty()) return block;
  free_.clear();
  threads_ = 0;
  memory = block->takeMemory();
  block.reset();
  return std::make_unique<Block>(kernel, index, stacks, std::move(memory));
}

void BlockPool::give(std::unique_ptr<Block> block) {
  block->rest();
  threads_ += block->threads();
  free_.push_back(std::move(block));
  // The oldest are of a kind that is not used any more, perhaps.
  while (free_.size() > kMostBlocks || threads_ > kMostThreads) {
    threads_ -= free_.front()->threads();
    free_.erase(free_.begin());
  }
}

}  // namespace tutti::softgpu
