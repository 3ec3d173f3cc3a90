// One resident thread block: its fibers, barriers and warps, and who runs next.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/simt/simt_host_abi.h"
#include "softgpu/exec/fiber.h"
#include "softgpu/exec/operation.h"

namespace tutti::softgpu {

class Block;
class Random;
class WeakMemory;

/// One CUDA thread.
struct Fiber {
  simt::HostThread thread = {};
  FiberContext context;
  Block* block = nullptr;
  bool exited = false;
  std::uint32_t votesMet = 0;          ///< what barrierCount() found
  std::uint64_t handedIn = 0;          ///< to exchange(), while it waits there
  std::uint64_t* handedOut = nullptr;  ///< likewise: where the others' values go
  std::uint32_t site = 0;              ///< in activeMask()
  std::uint32_t active = 0;            ///< what it found
  bool wholeWarp = false;              ///< it found all lanes, and none has gone elsewhere to meet others
};

/// Runs on its engine's thread only.
class Block {
 public:
  /// Takes a stack per thread from `stacks`; ready() is false when there was no memory for them. `memory` is what the
  /// threads reach memory through; null: nothing.
  Block(const KernelOperation& kernel, std::uint32_t index, StackPool& stacks, std::unique_ptr<WeakMemory> memory);
  Block(const KernelOperation& kernel, std::uint32_t index, StackPool& stacks);
  ~Block();
  /// Whether it can become a block of `kernel`: it has as many threads, and as much shared memory.
  bool fits(const KernelOperation& kernel) const;
  /// Becomes another block, once it has finished, with the stacks and the memory that it has. What is in its shared
  /// memory stays there, as on a GPU.
  void restart(const KernelOperation& kernel, std::uint32_t index, std::unique_ptr<WeakMemory> memory);
  /// Gives back what only a block that runs needs, once it has finished.
  void rest();
  /// For another block, of one that is not ready().
  std::unique_ptr<WeakMemory> takeMemory();
  std::size_t threads() const { return fibers_.size(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  bool ready() const { return ready_; }
  /// Runs every thread that can run until all of them have paused, wait or are gone. False when they did nothing but
  /// poll what they had polled before.
  bool runPass(Random* random);
  /// Stores wait to become visible, which takes further passes.
  bool storesPending() const;
  bool finished() const { return exited_ == fibers_.size(); }
  /// What a thread gave to trap(); null if none did. The block must not run again then.
  const std::string* trapped() const { return trapped_.get(); }

 private:
  struct Barrier {
    std::uint32_t needed = 0;
    std::uint32_t votes = 0;
    std::vector<Fiber*> waiting;
    std::vector<Fiber*> passed;  ///< arrived, and went on
  };
  /// Lanes that are to meet in exchange().
  struct Exchange {
    std::uint32_t mask = 0;
    std::uint32_t arrived = 0;
    std::vector<Fiber*> waiting;
  };
  struct Warp {
    std::uint32_t alive = 0;
    std::uint32_t arrived = 0;
    std::uint32_t generation = 0;
    bool ordersMemory = false;
    std::uint32_t votes[2] = {0, 0};
    std::uint64_t values[2][32] = {};
    std::uint32_t present[2] = {0, 0};
    std::vector<Fiber*> waiting;
    std::uint32_t absent = 0;         ///< lanes that have exited, or that the block does not have
    std::vector<Exchange> exchanges;  ///< of different masks
    std::vector<Fiber*> loading;      ///< in together()
    std::vector<Fiber*> storing;
    std::vector<Fiber*> asking;  ///< in activeMask()
  };
  static const simt::HostOps kOps;
  static Fiber& fiberOf(simt::HostThread* self) { return *static_cast<Fiber*>(self->scheduler); }
  static void run(void* fiber);
  static void barrier(simt::HostThread* self, std::uint32_t id, std::uint32_t nThreads);
  static void warpSync(simt::HostThread* self);
  static std::uint64_t shuffle(simt::HostThread* self, std::uint64_t value, std::uint32_t sourceLane);
  static std::uint32_t ballot(simt::HostThread* self, bool predicate);
  static void pause(simt::HostThread* self, bool again);
  static void trap(simt::HostThread* self, const char* message);
  static void exchange(simt::HostThread* self, std::uint32_t mask, std::uint64_t value, std::uint64_t values[32]);
  static void barrierArrive(simt::HostThread* self, std::uint32_t id, std::uint32_t nThreads);
  static std::uint32_t barrierCount(simt::HostThread* self, std::uint32_t id, std::uint32_t nThreads, bool predicate);
  static bool together(simt::HostThread* self, bool load);
  static std::uint32_t activeMask(simt::HostThread* self, std::uint32_t site);

  Warp& warpOf(const Fiber& fiber) { return warps_[fiber.thread.thread / 32]; }
  std::uint32_t converge(Fiber& self, std::uint64_t value, bool vote);
  static std::size_t sharedWords(const KernelOperation& kernel);
  void begin(std::uint32_t index);
  void enter(Fiber& fiber);
  bool goOnTogether(Random* random);
  bool answerMasks(Warp& warp, Random* random);
  bool enterInOrder(std::vector<Fiber*>& lanes, bool highestFirst);
  void checkStacks();
  void orderMemory(const std::vector<Fiber*>& waiting, const Fiber* arriving);
  void completeWarp(Warp& warp, const Fiber* arriving);
  bool exchangeMet(const Warp& warp, const Exchange& group) const {
    return (group.mask & ~(group.arrived | warp.absent)) == 0;
  }
  void completeExchange(Exchange& group, const Fiber* arriving);
  void laneEnded(Warp& warp, std::uint32_t lane);
  Barrier& arriveAt(std::uint32_t id, std::uint32_t nThreads);
  bool barrierMet(const Barrier& barrier, std::size_t arriving) const;
  void releaseBarrier(Barrier& barrier, const Fiber* arriving);
  void threadEnded(Fiber& fiber);
  void wake(std::vector<Fiber*>& waiting);

  KernelOperation kernel_;
  simt::HostShape shape_ = {};
  StackPool& stacks_;
  std::vector<Fiber> fibers_;
  std::vector<std::max_align_t> shared_;
  std::array<Barrier, 16> barriers_;
  std::vector<Warp> warps_;
  std::vector<Fiber*> runnable_;
  std::vector<Fiber*> paused_;
  bool linesWait_ = false;  ///< some lane is in together() or activeMask()
  SwitchPoint scheduler_;
  std::size_t exited_ = 0;
  bool ready_ = false;
  bool progressed_ = false;
  std::unique_ptr<std::string> trapped_;
  std::unique_ptr<WeakMemory> memory_;
};

/// Blocks that have ended, for others: making one takes longer than what a short kernel does. One thread at a time.
class BlockPool {
 public:
  /// A new one where none fits; it is not ready() if there are no stacks, also not those of blocks that are kept here.
  std::unique_ptr<Block> take(const KernelOperation& kernel, std::uint32_t index, StackPool& stacks,
                              std::unique_ptr<WeakMemory> memory);
  /// `block` has finished and did not trap.
  void give(std::unique_ptr<Block> block);

 private:
  static constexpr std::size_t kMostBlocks = 64;
  static constexpr std::size_t kMostThreads = 2048;  ///< each has a stack
  std::vector<std::unique_ptr<Block>> free_;         ///< the latest last
  std::size_t threads_ = 0;                          ///< of all of them
};

}  // namespace tutti::softgpu
