// What loads, stores and atomics have in common: spaces and orders.
#pragma once

#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {

/// The space that an instruction names; generic if it names none.
Space spaceOf(const Instruction& i);
/// What other threads may see of an access, or make with it.
enum class Strength : std::uint8_t { Weak, Relaxed, Acquire, Release, AcquireRelease };
Strength strengthOf(const Instruction& i);
/// How far its order reaches; the device where it does not say.
simt::FenceScope scopeOf(const Instruction& i);
llvm::AtomicOrdering orderingOf(Strength strength);

}  // namespace tutti::softgpu::ptx
