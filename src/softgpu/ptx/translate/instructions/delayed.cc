#include "softgpu/ptx/translate/instructions/delayed.h"

#include <cstddef>
#include <string>

#include "softgpu/ptx_library.h"

namespace tutti::softgpu::ptx {
namespace {

constexpr unsigned kPieceBytes = 16;       ///< of a store that others see whole
constexpr std::uint64_t kNothing = 65536;  ///< Linux maps nothing below

constexpr std::size_t memberOf(std::size_t common) {
  return offsetof(PtxMemory, common) + common;
}

Value* keptInFrame(Emitter& e, Value* bits) {
  e.ir().CreateAlignedStore(bits, e.scratch(), llvm::Align(kPieceBytes));
  return e.scratch();
}

}  // namespace

bool isDelayed(Emitter& e, Space space) {
  return e.unit().weakMemory && (space == Space::Generic || space == Space::Global || space == Space::Shared);
}

void checkPlace(Emitter& e, Value* address, unsigned bytes, Space space) {
  auto& ir = e.ir();
  const std::string where = "line " + std::to_string(e.current().line) + " of its PTX, " + e.current().text() + ": ";
  Value* number = ir.CreatePtrToInt(address, ir.getInt64Ty());
  if (bytes > 1) {
    Value* low = ir.CreateAnd(number, ir.getInt64(bytes - 1));
    e.trapIf(ir.CreateICmpNE(low, ir.getInt64(0)), where + "the address is no multiple of " + std::to_string(bytes));
  }
  if (space != Space::Shared) {
    // A store would wait, and crash somewhere else.
    e.trapIf(ir.CreateICmpULT(number, ir.getInt64(kNothing)), where + "there is no memory at so low an address");
  }
  if (space != Space::Global) return;
  Value* shared = ir.CreatePtrToInt(e.selfPointer(offsetof(simt::HostThread, shared)), ir.getInt64Ty());
  Value* shape = e.selfPointer(offsetof(simt::HostThread, shape));
  Value* dynamic = e.constantLoad(shape, offsetof(simt::HostShape, dynamicSharedBytes), ir.getInt32Ty());
  Value* size = ir.CreateAdd(ir.CreateZExt(dynamic, ir.getInt64Ty()), ir.getInt64(e.unit().reach.sharedBytes));
  e.trapIf(ir.CreateICmpULT(ir.CreateSub(number, shared), size),
           where + "the address is one of shared memory, the access is to global memory");
}

Value* delayedLoad(Emitter& e, Value* address, unsigned bytes, When when) {
  auto& ir = e.ir();
  const bool early = when == When::Early;
  e.callMemory(memberOf(early ? offsetof(simt::HostMemory, loadEarly) : offsetof(simt::HostMemory, load)),
               {e.scratch(), address, ir.getInt64(bytes)});
  return ir.CreateAlignedLoad(ir.getIntNTy(bytes * 8), e.scratch(), llvm::Align(kPieceBytes));
}

Value* delayedAcquiringLoad(Emitter& e, Value* address, unsigned bytes, simt::FenceScope scope) {
  Value* value = delayedLoad(e, address, bytes, When::Now);
  delayedAcquire(e, scope);
  return value;
}

void delayedAcquire(Emitter& e, simt::FenceScope scope) {
  e.callMemory(memberOf(offsetof(simt::HostMemory, acquire)), {e.ir().getInt32(static_cast<std::uint32_t>(scope))});
}

void delayedRelease(Emitter& e, simt::FenceScope scope) {
  e.callMemory(memberOf(offsetof(simt::HostMemory, release)), {e.ir().getInt32(static_cast<std::uint32_t>(scope))});
}

void delayedStore(Emitter& e, Value* address, Value* bits, Delay delay) {
  auto& ir = e.ir();
  const unsigned bytes = bits->getType()->getIntegerBitWidth() / 8;
  Value* from = keptInFrame(e, bits);
  if (delay == Delay::Any || bytes < kPieceBytes) {
    e.callMemory(memberOf(offsetof(simt::HostMemory, store)), {address, from, ir.getInt64(bytes)});
    return;
  }
  for (unsigned done = 0; done < bytes; done += kPieceBytes) {
    Value* to = ir.CreateConstGEP1_64(ir.getInt8Ty(), address, done);
    Value* piece = ir.CreateConstGEP1_64(ir.getInt8Ty(), from, done);
    e.callMemory(memberOf(offsetof(simt::HostMemory, storeLinePart)), {to, piece});
  }
}

void delayedReleasingStore(Emitter& e, Value* address, Value* bits, simt::FenceScope scope) {
  const unsigned bytes = bits->getType()->getIntegerBitWidth() / 8;
  if (scope == simt::FenceScope::Sys && (bytes == 4 || bytes == 8)) {
    e.callMemory(memberOf(offsetof(simt::HostMemory, storeRelease)),
                 {address, keptInFrame(e, bits), e.ir().getInt64(bytes)});
    return;
  }
  delayedRelease(e, scope);
  delayedStore(e, address, bits, Delay::Any);
}

void delayedFence(Emitter& e, simt::FenceScope scope) {
  e.callMemory(memberOf(offsetof(simt::HostMemory, fence)), {e.ir().getInt32(static_cast<std::uint32_t>(scope))});
}

void settle(Emitter& e, Value* address, unsigned bytes) {
  e.callMemory(offsetof(PtxMemory, settle), {address, e.ir().getInt64(bytes)});
}

void delayedCopy(Emitter& e, Value* to, Value* from, unsigned bytes, Value* there) {
  auto& ir = e.ir();
  ir.CreateMemSet(e.scratch(), ir.getInt8(0), bytes, llvm::MaybeAlign());
  e.callMemory(memberOf(offsetof(simt::HostMemory, loadEarly)), {e.scratch(), from, there});
  e.callMemory(offsetof(PtxMemory, copyAside), {to, e.scratch(), ir.getInt64(bytes)});
}

void delayedCopyOf(Emitter& e, Value* to, Value* from, Value* bytes, CopyEnd end) {
  if (end == CopyEnd::Awaited) return e.callMemory(offsetof(PtxMemory, copyAside), {to, from, bytes});
  e.callMemory(memberOf(offsetof(simt::HostMemory, copy)), {to, from, bytes, e.ir().getInt1(false)});
  delayedRelease(e, simt::FenceScope::Block);
}

void finishCopies(Emitter& e) {
  e.callMemory(memberOf(offsetof(simt::HostMemory, finishStreaming)), {});
}

}  // namespace tutti::softgpu::ptx
