// Ways to reach memory and to publish what was stored, for comparison with those that ship (device/simt/simt_cuda.h).
#pragma once

#include "device/simt/simt.h"
#include "params.h"

#define MICRO_DEVICE __device__ __forceinline__

namespace micro {

using tutti::simt::Pack16;

/// What ships: volatile accesses by generic addresses. Relaxed ones of system scope are the same instructions of the
/// machine.
struct Shipped {
  MICRO_DEVICE static void load(Pack16& v, const void* p) { tutti::simt::raw::load(v, p); }
  MICRO_DEVICE static void store(void* p, const Pack16& v) { tutti::simt::raw::store(p, v); }
};

// Name, address as the instructions take it, load, store.
#define MICRO_ACCESS(Name, address, loadOp, storeOp)                                                           \
  struct Name {                                                                                                \
    MICRO_DEVICE static void load(Pack16& v, const void* p) {                                                  \
      asm volatile(loadOp " {%0, %1}, [%2];" : "=l"(v.word[0]), "=l"(v.word[1]) : "l"(address(p)) : "memory"); \
    }                                                                                                          \
    MICRO_DEVICE static void store(void* p, const Pack16& v) {                                                 \
      asm volatile(storeOp " [%0], {%1, %2};" ::"l"(address(p)), "l"(v.word[0]), "l"(v.word[1]) : "memory");   \
    }                                                                                                          \
  };
MICRO_DEVICE const void* generic(const void* p) {
  return p;
}
MICRO_DEVICE std::size_t global(const void* p) {
  return __cvta_generic_to_global(p);
}
MICRO_ACCESS(VolatileGlobal, global, "ld.volatile.global.v2.u64", "st.volatile.global.v2.u64")
MICRO_ACCESS(RelaxedGpuGlobal, global, "ld.relaxed.gpu.global.v2.u64", "st.relaxed.gpu.global.v2.u64")
MICRO_ACCESS(Plain, generic, "ld.v2.u64", "st.v2.u64")
MICRO_ACCESS(PlainGlobal, global, "ld.global.v2.u64", "st.global.v2.u64")
MICRO_ACCESS(NcNoAllocate, global, "ld.global.nc.L1::no_allocate.v2.u64", "st.global.L1::no_allocate.v2.u64")
MICRO_ACCESS(NoAllocate, global, "ld.global.L1::no_allocate.v2.u64", "st.global.L1::no_allocate.v2.u64")
#undef MICRO_ACCESS

MICRO_DEVICE std::uint64_t now() {
  return tutti::simt::Thread().nanoseconds();
}
MICRO_DEVICE std::uint64_t cycles() {
  std::uint64_t count;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(count)::"memory");
  return count;
}

/// Begin and end of what a block does, as its first thread sees them.
class Stopwatch {
 public:
  MICRO_DEVICE void start() {
    begin_ = now();
    cycles_ = cycles();
  }
  MICRO_DEVICE void stop(BlockTime& time, std::uint64_t extra = 0) const {
    const std::uint64_t spent = cycles() - cycles_;
    time = {begin_, now(), spent, extra};
  }

 private:
  std::uint64_t begin_ = 0;
  std::uint64_t cycles_ = 0;
};

/// A point of time at which waits end. The clock is looked at now and then: reading it takes longer than a poll.
class Deadline {
 public:
  MICRO_DEVICE explicit Deadline(std::uint64_t nanoseconds) : end_(now() + nanoseconds) {}
  MICRO_DEVICE bool over() const { return now() > end_; }

  /// Polls until ready(); false: the time was over before.
  template <class Ready>
  MICRO_DEVICE bool wait(Ready ready) const {
    for (unsigned polls = 1; !ready(); ++polls) {
      if (polls % 64 == 0 && over()) return false;
    }
    return true;
  }

 private:
  std::uint64_t end_;
};

template <class T>
MICRO_DEVICE void addTo(T* counter, T value) {
  if (value != 0) atomicAdd(reinterpret_cast<unsigned long long*>(counter), value);
}

}  // namespace micro
