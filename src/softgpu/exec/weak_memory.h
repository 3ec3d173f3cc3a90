// Weak memory: the stores of one block's threads wait in buffers and become visible late, in an order of the dice, as
// far as fences, releases and barriers allow. See docs/softgpu.md for the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/simt/simt_host_abi.h"
#include "softgpu/exec/random.h"

namespace tutti::softgpu {

/// The store buffers of a block. Belongs to the engine that runs the block.
class WeakMemory {
 public:
  WeakMemory(std::uint64_t seed, std::uint32_t threads);

  /// What device code calls, the first member of a PtxMemory; acts on the thread that was named last by enter() on this
  /// engine.
  static const simt::HostMemory* operations();

  /// `thread` runs from now on; its stack is its own and never delayed.
  void enter(std::uint32_t thread, const char* stack, std::size_t stackBytes);
  /// A barrier of these threads came about: each now knows what any of them had stored or knew.
  void synchronise(const std::vector<std::uint32_t>& threads);
  /// Time passes: some stores may become visible.
  void drift();
  /// The end of the block: everything becomes visible, but for what was streamed and not finished, which is lost.
  void flush();
  bool empty() const { return lines_.empty(); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kLineBytes = 16;

  /// A delayed store: `bytes` of a line from `offset` on.
  struct Store {
    std::uint64_t sequence;
    std::uint32_t owner;
    std::uint32_t clock;  ///< the owner's, see synchronise()
    std::uint32_t next;   ///< later store to the same line
    std::uint8_t offset;
    std::uint8_t bytes;
    bool blockWide;  ///< a fence showed it to the whole block
    bool streamed;   ///< no release covers it yet
    bool endsLine;   ///< must not overtake earlier stores to the same 128 bytes
    unsigned char data[kLineBytes];
  };
  /// Stores to 16 aligned bytes, oldest first: they stay in order.
  struct Line {
    std::uintptr_t address;
    std::uint32_t first;
    std::uint32_t last;
  };
  /// For every thread of the block, up to which of its clock its stores are known. Shared by those who met at a
  /// barrier.
  using Knowledge = std::shared_ptr<std::vector<std::uint32_t>>;
  struct ThreadState {
    std::uint32_t clock = 1;
    Knowledge known;
  };

  static void load(void* to, const void* from, std::size_t bytes);
  static void store(void* to, const void* from, std::size_t bytes);
  static void copy(void* to, const void* from, std::size_t bytes, bool streaming);
  static void finishStreaming();
  static void storeLinePart(void* to, const void* from);
  static void fence(simt::FenceScope scope);
  static void storeRelease(void* to, const void* from, std::size_t bytes);
  static void settle(const void* address, std::size_t bytes);

  bool ownStack(const void* address) const;
  bool knows(const Store& store) const;
  void read(unsigned char* to, std::uintptr_t from, std::size_t bytes) const;
  enum class Kind { Plain, Streamed, EndsLine };
  void write(std::uintptr_t to, const unsigned char* from, std::size_t bytes, Kind kind);
  void append(std::uintptr_t to, const unsigned char* from, std::size_t bytes, Kind kind);
  void reach(simt::FenceScope scope);
  void drainSome(std::size_t most);
  void drainFirst(std::size_t line);
  void drainBefore(std::uintptr_t address, std::uint64_t sequence);
  void drainKnown(std::size_t line);

  Random random_;
  std::vector<ThreadState> threads_;
  std::vector<Store> stores_;
  std::uint32_t freeStore_ = kNone;
  std::size_t pending_ = 0;
  std::vector<Line> lines_;
  std::unordered_map<std::uintptr_t, std::size_t> lineAt_;
  std::uint64_t sequence_ = 0;
  unsigned driftEvery_;       ///< on average, passes between two drains
  unsigned storeDriftEvery_;  ///< on average, stores between two drains
};

}  // namespace tutti::softgpu
