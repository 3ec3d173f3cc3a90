// Barriers in shared memory (mbarrier objects). Only threads of one block reach them, one at a time.
#include <cstdint>
#include <cstdio>

#include "softgpu/ptx/support/functions.h"

namespace {

using tutti::simt::HostThread;

/// The 64 bits of an object, which programs only hand on.
struct Barrier {
  std::uint32_t pending;   ///< arrivals that the phase still needs
  std::uint32_t expected;  ///< that the next one needs
  std::int32_t bytes;      ///< of copies that the phase still waits for; may be below 0 for a while
  bool phase;              ///< odd

  static constexpr unsigned kCountBits = 20, kBytesAt = 40, kPhaseAt = 63;
  static constexpr std::uint64_t kCounts = (1u << kCountBits) - 1;

  static Barrier of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word & kCounts), static_cast<std::uint32_t>(word >> kCountBits & kCounts),
            static_cast<std::int32_t>(static_cast<std::int64_t>(word << 1) >> (kBytesAt + 1)), (word >> kPhaseAt) != 0};
  }
  std::uint64_t word() const {
    const std::uint64_t low = (static_cast<std::uint64_t>(bytes) << kBytesAt) & ~(std::uint64_t{1} << kPhaseAt);
    return std::uint64_t{phase} << kPhaseAt | low | std::uint64_t{expected} << kCountBits | pending;
  }
  void completeIfDone() {
    if (pending != 0 || bytes != 0) return;
    phase = !phase;
    pending = expected;
  }
};

}  // namespace

extern "C" {

void ptx_mbarrier_init(std::uint64_t* object, std::uint32_t count) {
  *object = Barrier{count, count, 0, false}.word();
}

std::uint64_t ptx_mbarrier_arrive(HostThread* self, std::uint64_t* object, std::uint32_t count, std::uint32_t bytes,
                                  bool drops) {
  const std::uint64_t before = *object;
  Barrier barrier = Barrier::of(before);
  if (count > barrier.pending) {
    char why[128];
    std::snprintf(why, sizeof(why), "mbarrier: %u arrivals, and its phase needs %u more; it is initialised for %u",
                  count, barrier.pending, barrier.expected);
    self->ops->trap(self, why);
  }
  barrier.bytes += static_cast<std::int32_t>(bytes);
  barrier.pending -= count;
  if (drops) barrier.expected -= count;
  barrier.completeIfDone();
  *object = barrier.word();
  return before;
}

void ptx_mbarrier_bytes(std::uint64_t* object, std::int32_t more) {
  Barrier barrier = Barrier::of(*object);
  barrier.bytes += more;
  barrier.completeIfDone();
  *object = barrier.word();
}

std::uint32_t ptx_mbarrier_pending(std::uint64_t state) {
  return Barrier::of(state).pending;
}

/// Whether a phase has ended: the one of a state, or the latest of this parity.
bool ptx_mbarrier_done(const std::uint64_t* object, std::uint64_t state) {
  return Barrier::of(*object).phase != Barrier::of(state).phase;
}
bool ptx_mbarrier_parity_done(const std::uint64_t* object, std::uint32_t parity) {
  return Barrier::of(*object).phase != ((parity & 1) != 0);
}

}  // extern "C"
