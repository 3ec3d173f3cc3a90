// The binary contract between the software GPU (libcuda.so.1 of src/softgpu) and kernels compiled for the host.
// Plain C structs: the two sides are different shared libraries.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::simt {

inline constexpr std::uint32_t kHostAbiVersion = 6;

struct HostThread;

/// What a fiber asks of the scheduler that runs it. All functions are called on the fiber itself.
struct HostOps {
  /// Waits until `nThreads` threads of the block (a multiple of 32) have arrived at barrier `id` (0..15). 0 is the
  /// whole block's. Threads that were aborted by softgpu's own shutdown never return.
  void (*barrier)(HostThread* self, std::uint32_t id, std::uint32_t nThreads);
  /// Converges the threads of this warp that have not exited.
  void (*warpSync)(HostThread* self);
  /// Warp-wide: returns the value that lane `sourceLane` passed in.
  std::uint64_t (*shuffle)(HostThread* self, std::uint64_t value, std::uint32_t sourceLane);
  /// Warp-wide: bit i is set if lane i passed true.
  std::uint32_t (*ballot)(HostThread* self, bool predicate);
  /// Told after an unsuccessful poll: lets other fibers, blocks, devices and, in the end, the host's other processes
  /// run. The only way a kernel may wait. `again`: the thread has done nothing but poll since its last pause.
  void (*pause)(HostThread* self, bool again);
  /// Stops the kernel with an error (cudaErrorLaunchFailure) that carries `message`. Does not return.
  void (*trap)(HostThread* self, const char* message);
  /// Waits until all lanes of `mask` that have not exited have come with the same mask; the caller is one of them. Each
  /// hands in `value`; values[i] becomes what lane i of the mask handed in, other words are left alone. Orders memory
  /// among them as warpSync() does. Lanes that exit meanwhile are not waited for.
  void (*exchange)(HostThread* self, std::uint32_t mask, std::uint64_t value, std::uint64_t values[32]);
  /// Counts as arrived at barrier `id` like barrier(), and goes on.
  void (*barrierArrive)(HostThread* self, std::uint32_t id, std::uint32_t nThreads);
  /// barrier(), and returns how many of the threads that met there passed true.
  std::uint32_t (*barrierCount)(HostThread* self, std::uint32_t id, std::uint32_t nThreads, bool predicate);
  /// Before an access to a part of a line that a warp accesses as one; false: it does not, because the calling thread
  /// has not seen by activeMask(), since it last met others of its warp, that all 32 execute it together. True: the
  /// lanes that can come here do, and then go on one after the other, the highest lane first for a load, the lowest
  /// first for a store: whoever marks the end of a line by a flag in its last part sees and shows the rest of it with
  /// the flag.
  bool (*together)(HostThread* self, bool load);
  /// The lanes that execute the instruction `site` together: those that can come there before anything else happens;
  /// in random order now and then each for itself, as threads of a GPU may go on apart after any branch.
  std::uint32_t (*activeMask)(HostThread* self, std::uint32_t site);
};

/// How far a fence or a release reaches.
enum class FenceScope : std::uint32_t { Block, Gpu, Sys };

/// Memory whose stores become visible late and out of order, and whose loads may return what was there a while ago:
/// device code reaches what others see through these. Called on the running fiber.
struct HostMemory {
  /// Bytes as the calling thread sees them: its own stores and those that a barrier passed to it, then memory. 4 or 8
  /// aligned bytes are one access. It orders nothing by itself: see acquire().
  void (*load)(void* to, const void* from, std::size_t bytes);
  /// Stores in aligned units of at most 16 bytes, each visible whole or not at all, in any order.
  void (*store)(void* to, const void* from, std::size_t bytes);
  /// loadEarly() and store() in one.
  /// Streaming: no release covers the stores before finishStreaming().
  void (*copy)(void* to, const void* from, std::size_t bytes, bool streaming);
  void (*finishStreaming)();
  /// 16 aligned bytes; those at the end of a 128-byte line do not become visible before the earlier ones of the line.
  void (*storeLinePart)(void* to, const void* from);
  void (*fence)(FenceScope scope);
  /// release(Sys), then a store of 4 or 8 bytes that is visible at once.
  void (*storeRelease)(void* to, const void* from, std::size_t bytes);
  /// load(), but memory as it was some time between now and the thread's last fence or acquire(), or what a barrier has
  /// passed to it of such: a GPU may load data before the flag in front of it. No older than what the block has loaded
  /// of these bytes before.
  void (*loadEarly)(void* to, const void* from, std::size_t bytes);
  /// The half of a fence that looks back: later loads return nothing that was older then. Block: of what threads of the
  /// block have stored, or acquired from elsewhere.
  void (*acquire)(FenceScope scope);
  /// The half of a fence that looks forward: what the thread knows becomes visible before its later stores.
  void (*release)(FenceScope scope);
};

/// How a launch is cut into blocks and threads. The threads of a block and the blocks of a grid are numbered with x
/// fastest.
struct HostShape {
  std::uint32_t block[3];
  std::uint32_t grid[3];
  std::uint32_t dynamicSharedBytes;
  /// 16 bytes, zeros at first, in which the blocks of a cooperative launch meet; null for others.
  void* workspace;
};

/// One CUDA thread of a running kernel. The software GPU fills it; device code reads it through simt::Thread.
struct HostThread {
  const HostOps* ops;
  void* shared;              ///< the block's shared memory, 16-byte aligned, zeroed
  std::uint32_t thread;      ///< number in the block: threadIdx.x where it has one dimension
  std::uint32_t threads;     ///< of the block
  std::uint32_t block;       ///< number in the grid: blockIdx.x where it has one dimension
  std::uint32_t blocks;      ///< of the grid
  void* scheduler;           ///< the software GPU's own
  const HostMemory* memory;  ///< null: stores go straight to memory
  const HostShape* shape;
  void* variables;  ///< those of the kernel's module on this device; null if it has none
};

/// A kernel compiled for the host. `params` points at a copy of its parameters; tutti's own take one struct by value.
struct HostKernel {
  const char* name;
  void (*entry)(HostThread* self, const void* params);
  std::uint32_t paramBytes;
  std::uint32_t staticSharedBytes;
  std::uint32_t maxThreads;
  /// Runs all threads of a block, one after the other, on the caller's stack: of a kernel whose threads never wait for
  /// one another and never trap. `self` is of no thread in particular. Null: each thread needs a fiber.
  void (*wholeBlock)(HostThread* self, const void* params) = nullptr;
};

struct HostKernelTable {
  std::uint32_t abiVersion;
  std::uint32_t count;
  const HostKernel* kernels;
};

}  // namespace tutti::simt

extern "C" {
/// Exported by the software GPU's libcuda.so.1 and by no other: its presence is how tutti knows where it runs. Takes
/// the place of cuModuleLoadData: `*module` then answers cuModuleGetFunction by HostKernel::name. `table` must stay.
/// `module` is a CUmodule*, the result a CUresult.
int softgpuRegisterKernels(const tutti::simt::HostKernelTable* table, void** module);
/// Exported by libtutti-kernels-host.so, beside libnccl.so.2.
const tutti::simt::HostKernelTable* tuttiHostKernels(void);
}
