// Where the threads of a block wait for one another: barriers, and what warps do together.
#include <algorithm>
#include <array>
#include <bit>

#include "softgpu/exec/block.h"
#include "softgpu/exec/random.h"
#include "softgpu/exec/weak_memory.h"

namespace tutti::softgpu {

/// The threads of `waiting`, and `arriving` unless it is null, have met.
void Block::orderMemory(const std::vector<Fiber*>& waiting, const Fiber* arriving) {
  if (memory_ == nullptr) return;
  std::vector<std::uint32_t> threads;
  threads.reserve(waiting.size() + 1);
  for (const Fiber* fiber : waiting) threads.push_back(fiber->thread.thread);
  if (arriving != nullptr) threads.push_back(arriving->thread.thread);
  if (threads.size() > 1) memory_->synchronise(threads);
}

/// Those who wait for the others of their warp may have waited for this one alone.
void Block::laneEnded(Warp& warp, std::uint32_t lane) {
  warp.absent |= 1u << lane;
  --warp.alive;
  if (warp.arrived != 0 && warp.arrived == warp.alive) completeWarp(warp, nullptr);
  for (std::size_t i = 0; i < warp.exchanges.size();) {
    if (!exchangeMet(warp, warp.exchanges[i])) {
      ++i;
      continue;
    }
    completeExchange(warp.exchanges[i], nullptr);
    warp.exchanges.erase(warp.exchanges.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

Block::Barrier& Block::arriveAt(std::uint32_t id, std::uint32_t nThreads) {
  Barrier& barrier = barriers_[id & 15];
  // A count is of whole warps; the last one may have fewer threads.
  barrier.needed = static_cast<std::uint32_t>(std::min<std::size_t>(nThreads, fibers_.size()));
  return barrier;
}

/// Whether all are there, with `arriving` more than those it knows.
bool Block::barrierMet(const Barrier& barrier, std::size_t arriving) const {
  std::size_t there = barrier.waiting.size() + barrier.passed.size() + arriving;
  if (&barrier == barriers_.data()) {
    // As on a GPU, threads that have ended no longer count for the whole block's barrier, nor do they count twice.
    there += exited_;
    for (const Fiber* fiber : barrier.passed) there -= fiber->exited ? 1 : 0;
  }
  return there >= barrier.needed;
}

void Block::releaseBarrier(Barrier& barrier, const Fiber* arriving) {
  for (Fiber* fiber : barrier.waiting) fiber->votesMet = barrier.votes;
  if (memory_ != nullptr && !barrier.passed.empty()) {
    barrier.passed.insert(barrier.passed.end(), barrier.waiting.begin(), barrier.waiting.end());
    orderMemory(barrier.passed, arriving);
  } else {
    orderMemory(barrier.waiting, arriving);
  }
  barrier.votes = 0;
  barrier.passed.clear();
  wake(barrier.waiting);
}

void Block::barrier(simt::HostThread* self, std::uint32_t id, std::uint32_t nThreads) {
  barrierCount(self, id, nThreads, false);
}

void Block::barrierArrive(simt::HostThread* self, std::uint32_t id, std::uint32_t nThreads) {
  Fiber& fiber = fiberOf(self);
  Block& block = *fiber.block;
  Barrier& barrier = block.arriveAt(id, nThreads);
  barrier.passed.push_back(&fiber);
  block.progressed_ = true;
  if (block.barrierMet(barrier, 0)) block.releaseBarrier(barrier, nullptr);
}

std::uint32_t Block::barrierCount(simt::HostThread* self, std::uint32_t id, std::uint32_t nThreads, bool predicate) {
  Fiber& fiber = fiberOf(self);
  Block& block = *fiber.block;
  Barrier& barrier = block.arriveAt(id, nThreads);
  if (predicate) ++barrier.votes;
  if (block.barrierMet(barrier, 1)) {
    const std::uint32_t votes = barrier.votes;
    block.releaseBarrier(barrier, &fiber);
    return votes;
  }
  barrier.waiting.push_back(&fiber);
  fiber.context.leave(block.scheduler_);
  return fiber.votesMet;
}

/// Gives everybody who waits, and `arriving` unless it is null, what they all handed in.
void Block::completeExchange(Exchange& group, const Fiber* arriving) {
  std::array<std::uint64_t, 32> values = {};
  for (const Fiber* fiber : group.waiting) values[fiber->thread.thread % 32] = fiber->handedIn;
  if (arriving != nullptr) values[arriving->thread.thread % 32] = arriving->handedIn;
  const auto give = [&](const Fiber& fiber) {
    for (std::uint32_t left = group.arrived; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      fiber.handedOut[lane] = values[static_cast<std::size_t>(lane)];
    }
  };
  for (const Fiber* fiber : group.waiting) give(*fiber);
  if (arriving != nullptr) give(*arriving);
  orderMemory(group.waiting, arriving);
  wake(group.waiting);
}

void Block::exchange(simt::HostThread* self, std::uint32_t mask, std::uint64_t value, std::uint64_t values[32]) {
  Fiber& fiber = fiberOf(self);
  Block& block = *fiber.block;
  Warp& warp = block.warpOf(fiber);
  auto group = std::find_if(warp.exchanges.begin(), warp.exchanges.end(),
                            [mask](const Exchange& other) { return other.mask == mask; });
  if (group == warp.exchanges.end()) group = warp.exchanges.insert(group, Exchange{mask, 0, {}});
  group->arrived |= 1u << fiber.thread.thread % 32;
  fiber.wholeWarp = false;
  fiber.handedIn = value;
  fiber.handedOut = values;
  if (block.exchangeMet(warp, *group)) {
    block.completeExchange(*group, &fiber);
    warp.exchanges.erase(group);
    return;
  }
  group->waiting.push_back(&fiber);
  fiber.context.leave(block.scheduler_);
}

bool Block::together(simt::HostThread* self, bool load) {
  Fiber& fiber = fiberOf(self);
  if (!fiber.wholeWarp) return false;
  Block& block = *fiber.block;
  Warp& warp = block.warpOf(fiber);
  (load ? warp.loading : warp.storing).push_back(&fiber);
  block.linesWait_ = true;
  fiber.context.leave(block.scheduler_);
  return true;
}

std::uint32_t Block::activeMask(simt::HostThread* self, std::uint32_t site) {
  Fiber& fiber = fiberOf(self);
  Block& block = *fiber.block;
  fiber.site = site;
  block.warpOf(fiber).asking.push_back(&fiber);
  block.linesWait_ = true;
  fiber.context.leave(block.scheduler_);
  return fiber.active;
}

/// Tells the lanes that wait in activeMask() who is with them, and lets them go on. True if there were some.
bool Block::answerMasks(Warp& warp, Random* random) {
  constexpr std::uint32_t kAll = 0xffffffff;
  std::vector<Fiber*> now;
  now.swap(warp.asking);
  const bool apart = random != nullptr && random->below(4) == 0;
  for (Fiber* fiber : now) {
    fiber->active = 0;
    for (const Fiber* other : now) {
      const bool with = apart ? other == fiber : other->site == fiber->site;
      if (with) fiber->active |= 1u << other->thread.thread % 32;
    }
    fiber->wholeWarp = fiber->active == kAll;
  }
  for (Fiber* fiber : now) {
    enter(*fiber);
    if (trapped_ != nullptr) break;
  }
  return !now.empty();
}

/// Lets the lanes go on that wait in together() or activeMask(). True if some did, and others may be runnable now.
bool Block::goOnTogether(Random* random) {
  linesWait_ = false;
  const std::size_t first = random == nullptr ? 0 : random->below(warps_.size());
  bool any = false;
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    Warp& warp = warps_[(first + i) % warps_.size()];
    any = answerMasks(warp, random) || any;
    if (trapped_ != nullptr) return false;
    any = enterInOrder(warp.loading, true) || any;
    any = enterInOrder(warp.storing, false) || any;
    if (trapped_ != nullptr) return false;
  }
  return any;
}

/// They may come to the next line at once, and wait there.
bool Block::enterInOrder(std::vector<Fiber*>& lanes, bool highestFirst) {
  std::vector<Fiber*> now;
  now.swap(lanes);
  std::ranges::sort(now, [highestFirst](const Fiber* a, const Fiber* b) {
    return highestFirst ? a->thread.thread > b->thread.thread : a->thread.thread < b->thread.thread;
  });
  for (Fiber* fiber : now) {
    enter(*fiber);
    if (trapped_ != nullptr) break;
  }
  return !now.empty();
}

void Block::completeWarp(Warp& warp, const Fiber* arriving) {
  if (warp.ordersMemory) orderMemory(warp.waiting, arriving);
  warp.ordersMemory = false;
  warp.arrived = 0;
  ++warp.generation;
  // The next use of this half overwrites it only after every lane has read the present one.
  warp.votes[warp.generation & 1] = 0;
  warp.present[warp.generation & 1] = 0;
  wake(warp.waiting);
}

std::uint32_t Block::converge(Fiber& self, std::uint64_t value, bool vote) {
  Warp& warp = warpOf(self);
  const std::uint32_t half = warp.generation & 1;
  const std::uint32_t lane = self.thread.thread % 32;
  self.wholeWarp = false;
  warp.values[half][lane] = value;
  warp.present[half] |= 1u << lane;
  if (vote) warp.votes[half] |= 1u << lane;
  if (++warp.arrived == warp.alive) {
    completeWarp(warp, &self);
  } else {
    warp.waiting.push_back(&self);
    self.context.leave(scheduler_);
  }
  return half;
}

void Block::warpSync(simt::HostThread* self) {
  Fiber& fiber = fiberOf(self);
  fiber.block->warpOf(fiber).ordersMemory = true;
  fiber.block->converge(fiber, 0, false);
}

std::uint64_t Block::shuffle(simt::HostThread* self, std::uint64_t value, std::uint32_t sourceLane) {
  Fiber& fiber = fiberOf(self);
  const std::uint32_t half = fiber.block->converge(fiber, value, false);
  const Warp& warp = fiber.block->warpOf(fiber);
  const std::uint32_t lane = sourceLane & 31;
  return (warp.present[half] >> lane & 1) != 0 ? warp.values[half][lane] : value;
}

std::uint32_t Block::ballot(simt::HostThread* self, bool predicate) {
  Fiber& fiber = fiberOf(self);
  const std::uint32_t half = fiber.block->converge(fiber, 0, predicate);
  return fiber.block->warpOf(fiber).votes[half];
}

}  // namespace tutti::softgpu
