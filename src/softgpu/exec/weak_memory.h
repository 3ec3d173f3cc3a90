// Weak memory: the stores of one block's threads wait in buffers and become visible late, in an order of the dice, as
// far as fences, releases and barriers allow; loads may come early, and return what was there a while ago. See
// docs/softgpu.md for the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/simt/simt_host_abi.h"
#include "softgpu/exec/random.h"
#include "softgpu/exec/store_history.h"

namespace tutti::softgpu {

/// The store buffers of a block, and how far back its loads may look. Belongs to the engine that runs the block.
class WeakMemory final : private StoreHistory::Known {
 public:
  WeakMemory(std::uint64_t seed, std::uint32_t threads);
  WeakMemory(const WeakMemory&) = delete;
  WeakMemory& operator=(const WeakMemory&) = delete;
  ~WeakMemory() = default;

  /// What device code calls, the first member of a PtxMemory; acts on the thread that was named last by enter() on this
  /// engine.
  static const simt::HostMemory* operations();

  /// `thread` runs from now on; its stack is its own and never delayed.
  void enter(std::uint32_t thread, const char* stack, std::size_t stackBytes);
  /// A barrier of these threads came about: each now knows what any of them had stored, knew or acquired.
  void synchronise(const std::vector<std::uint32_t>& threads);
  /// Time passes: some stores may become visible.
  void drift();
  /// The end of the block: everything becomes visible, but for what copyBytes() streamed and nobody finished, which is
  /// lost.
  void flush();
  bool empty() const { return lines_.empty(); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kLineBytes = StoreHistory::kLineBytes;

  /// A delayed store: `bytes` of a line from `offset` on.
  struct Store {
    std::uint64_t sequence;
    Storer storer;
    std::uint32_t next;  ///< later store to the same line
    std::uint8_t offset;
    std::uint8_t bytes;
    bool streamed;  ///< no release covers it yet
    bool finishes;  ///< if it is streamed: by itself, at the latest with the block
    bool endsLine;  ///< must not overtake earlier stores to the same 128 bytes
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
    std::uint64_t acquired = 0;         ///< its loads return nothing that was replaced before (StoreHistory::now)
    std::uint64_t acquiredInBlock = 0;  ///< the same of what threads of the block have stored
  };

  /// Whose accesses the operations are.
  struct Running {
    WeakMemory* memory = nullptr;
    std::uint32_t thread = 0;
    const char* stack = nullptr;
    std::size_t stackBytes = 0;
  };
  static constinit thread_local Running running;

  static void load(void* to, const void* from, std::size_t bytes);
  static void loadEarly(void* to, const void* from, std::size_t bytes);
  static void acquire(simt::FenceScope scope);
  static void release(simt::FenceScope scope);
  static void store(void* to, const void* from, std::size_t bytes);
  static void copy(void* to, const void* from, std::size_t bytes, bool streaming);
  static void finishStreaming();
  static void storeLinePart(void* to, const void* from);
  static void fence(simt::FenceScope scope);
  static void storeRelease(void* to, const void* from, std::size_t bytes);
  static void settle(const void* address, std::size_t bytes);
  static void copyAside(void* to, const void* from, std::size_t bytes);

  bool ownStack(std::uintptr_t address) const;
  bool mustSee(const Storer& storer, std::uint64_t visibleAt, std::uint64_t time) const override;
  bool sees(const Store& waiting, std::uint64_t time) const { return mustSee(waiting.storer, Storer::kNever, time); }
  Storer runningThread() const;
  static constexpr std::uint64_t kNow = ~std::uint64_t{0};
  /// The time at which a load that may be early of the running thread takes its value, or kNow.
  std::uint64_t timeOfLoad(std::uintptr_t from, std::size_t bytes);
  /// Later loads of these bytes by the block return nothing older.
  void sawAt(std::uint64_t time, std::uintptr_t from, std::size_t bytes);
  void readNow(unsigned char* to, std::uintptr_t from, std::size_t bytes);
  void readEarly(unsigned char* to, std::uintptr_t from, std::size_t bytes);
  /// What the running thread knows of stores that are not visible yet, over what is.
  void addWaiting(unsigned char* to, std::uintptr_t from, std::size_t bytes, std::uint64_t time) const;
  enum class Kind { Plain, Streamed, Aside, EndsLine };
  void copyAs(Kind kind, void* to, const void* from, std::size_t bytes);
  void write(std::uintptr_t to, const unsigned char* from, std::size_t bytes, Kind kind);
  void append(std::uintptr_t to, const unsigned char* from, std::size_t bytes, Kind kind);
  void reach(simt::FenceScope scope);
  void show(std::uintptr_t to, const unsigned char* from, std::size_t bytes, const Storer& storer);
  /// Stores of the block wait, or may be overlooked by loads.
  bool anyToKnow() const;
  void passAcquired(const std::vector<std::uint32_t>& threads);
  void drainSome(std::size_t most);
  void drainFirst(std::size_t line);
  void drainBefore(std::uintptr_t address, std::uint64_t sequence);
  void drainKnown(std::size_t line);

  StoreHistory& history_ = StoreHistory::ofProcess();
  const std::uint64_t block_ = history_.newBlock();
  Random random_;
  Random loads_;  ///< of its own, so that stores do not depend on it
  std::vector<ThreadState> threads_;
  std::vector<Store> stores_;
  std::uint32_t freeStore_ = kNone;
  std::size_t pending_ = 0;
  std::vector<Line> lines_;
  std::unordered_map<std::uintptr_t, std::size_t> lineAt_;
  std::uint64_t sequence_ = 0;
  unsigned driftEvery_;               ///< on average, passes between two drains
  unsigned storeDriftEvery_;          ///< on average, stores between two drains
  std::uint64_t loadsReach_;          ///< so many stores of the process, at most, does a load look back; 0: none does
  unsigned earlyEvery_;               ///< on average, loads of which one comes early
  std::uint64_t lastStore_ = 0;       ///< of the block that became visible, by the time of StoreHistory; 0: none
  std::uint64_t newestAcquired_ = 0;  ///< of any thread of the block
  std::uint64_t seenLeast_ = 0;       ///< what all lines of seenAt_ have that it has forgotten
  std::unordered_map<std::uintptr_t, std::uint64_t> seenAt_;  ///< by line: when a load of the block took its value
};

}  // namespace tutti::softgpu
