// Accesses in weak memory (PtxOptions): through HostThread::memory, which lets stores wait and loads come early.
#pragma once

#include "device/simt/simt_host_abi.h"
#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {

/// Whether accesses to this space go through weak memory here: others may see it, and the translation is for that.
bool isDelayed(Emitter& e, Space space);
/// Traps where the address is no multiple of `bytes`, where it is near 0, and where an access that names the global
/// space is to shared memory.
void checkPlace(Emitter& e, Value* address, unsigned bytes, Space space);
/// `bytes` bytes, at most 32, as one integer. Early: others may have stored since (HostMemory::loadEarly).
enum class When : std::uint8_t { Now, Early };
Value* delayedLoad(Emitter& e, Value* address, unsigned bytes, When when);
/// A load of acquire order.
Value* delayedAcquiringLoad(Emitter& e, Value* address, unsigned bytes, simt::FenceScope scope);
/// After an atomic operation of acquire order: what comes later is loaded later.
void delayedAcquire(Emitter& e, simt::FenceScope scope);
/// Before an operation of release order on memory itself.
void delayedRelease(Emitter& e, simt::FenceScope scope);
/// How a store becomes visible: by itself, or not before what was stored earlier to the same 128 bytes.
enum class Delay : std::uint8_t { Any, EndsLine };
void delayedStore(Emitter& e, Value* address, Value* bits, Delay delay);
/// A store of release order.
void delayedReleasingStore(Emitter& e, Value* address, Value* bits, simt::FenceScope scope);
/// A fence that covers asynchronous copies as well, which those of PTX do not.
void delayedFence(Emitter& e, simt::FenceScope scope);
/// Before an atomic operation on memory itself, and after it.
void settle(Emitter& e, Value* address, unsigned bytes);
/// A copy of `bytes` bytes, zeros behind the first `there`, that no fence covers before finishCopies().
void delayedCopy(Emitter& e, Value* to, Value* from, unsigned bytes, Value* there);
void finishCopies(Emitter& e);
/// The same for any number of bytes. Told: who learns of its end sees it; else as delayedCopy().
enum class CopyEnd : std::uint8_t { Told, Awaited };
void delayedCopyOf(Emitter& e, Value* to, Value* from, Value* bytes, CopyEnd end);

}  // namespace tutti::softgpu::ptx
