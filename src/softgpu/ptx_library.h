// The binary contract between libcuda.so.1 and libsoftgpu-ptx.so, which turns GPU code (PTX) into code for the host.
// A library of its own, loaded at the first image: nobody else needs LLVM. Plain C structs and functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/simt/simt_host_abi.h"

namespace tutti::softgpu {

inline constexpr std::uint32_t kPtxAbiVersion = 3;

/// Where a parameter of a kernel lies in the block of bytes that the kernel's code is given.
struct PtxParam {
  std::uint32_t offset;
  std::uint32_t bytes;
};

/// A kernel (`.entry`) of an image; its code is made by softgpuPtxKernel.
struct PtxFunction {
  const char* name;
  const PtxParam* params;
  std::uint32_t paramCount;
  std::uint32_t paramBytes;         ///< of the whole block
  std::uint32_t staticSharedBytes;  ///< dynamic shared memory begins there
  std::uint32_t localBytes;         ///< per thread
  std::uint32_t maxThreads;         ///< of a block; 1024 where the code does not say
};

/// A `.global` or `.const` variable.
struct PtxVariable {
  const char* name;
  std::uint64_t offset;  ///< in the variables of the image
  std::uint64_t bytes;
  bool constant;
};

/// The 8 bytes at `offset` of the variables hold an address of the variables: `target` bytes from their beginning.
struct PtxRelocation {
  std::uint64_t offset;
  std::uint64_t target;
};

/// An image that was read. Whoever loads it on a device allocates `variableBytes` there (aligned to 256), copies
/// `initial` in and adds the relocations; HostThread::variables is that address.
struct PtxProgram {
  const PtxFunction* functions;
  const PtxVariable* variables;
  const PtxRelocation* relocations;
  const char* initial;
  std::uint64_t variableBytes;
  std::uint32_t functionCount;
  std::uint32_t variableCount;
  std::uint32_t relocationCount;
};

/// What an image is read for.
struct PtxOptions {
  std::uint32_t capability;  ///< of the devices: 90 for 9.0
  /// Code that is made of the image is kept there, and looked for; null or empty: nowhere.
  const char* cacheFolder;
  /// Stores become visible late and loads may come early: code reaches memory that others may see through
  /// HostThread::memory, which is a PtxMemory, and traps where an access is not aligned or names a space that its
  /// address is not of. Its kernels have no HostKernel::wholeBlock.
  bool weakMemory;
};

/// What translated code calls in weak memory.
struct PtxMemory {
  simt::HostMemory common;
  /// Before an atomic operation on memory itself: what the calling thread knows of these bytes becomes visible. And
  /// after it: no later load of the block returns anything older.
  void (*settle)(const void* address, std::size_t bytes);
  /// HostMemory::copy(), streaming, of what the GPU copies on the side: at the end of the block it is done.
  void (*copyAside)(void* to, const void* from, std::size_t bytes);
};

}  // namespace tutti::softgpu

extern "C" {
/// Reads an image: PTX text, a fatbin, or the wrapper around one that nvcc puts into a program. `bytes` is 0 where the
/// caller knows none: text then ends at a NUL. Of a fatbin's PTX the newest that a device of that capability runs is
/// taken. Null where it cannot be read; `why` then says so in a sentence, within `whyBytes`. `abiVersion` is
/// kPtxAbiVersion. The image and the options may go afterwards. Who loads the same code again for the same options gets
/// the same program, which is to be unloaded as often. Thread-safe.
const tutti::softgpu::PtxProgram* softgpuPtxLoad(std::uint32_t abiVersion, const void* image, std::size_t bytes,
                                                 const tutti::softgpu::PtxOptions* options, char* why,
                                                 std::size_t whyBytes);
/// The code of function `index`, made at the first call; it lives as long as the program. Null where it holds something
/// that is not translated: `why` names the instruction and its line. Thread-safe.
const tutti::simt::HostKernel* softgpuPtxKernel(const tutti::softgpu::PtxProgram* program, std::uint32_t index,
                                                char* why, std::size_t whyBytes);
/// The last one: nothing of it may run any more.
void softgpuPtxUnload(const tutti::softgpu::PtxProgram* program);
}
