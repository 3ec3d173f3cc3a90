// What the software GPU's libcuda.so.1 offers beyond CUDA's own calls: a device's memory as one range.
#pragma once

#include <cuda.h>

#include <cstddef>

extern "C" {
/// Where all that cuMemAlloc and its like gave this process on `device` lies, now and later, and a handle that maps all
/// of it in another process (cuIpcOpenMemHandle). The other process may read whatever it was told the address of; the
/// range stays for as long as this process lives, so that it never faults. Allocations by cuMemCreate are elsewhere.
/// CUDA_ERROR_NOT_SUPPORTED where the system refused so large a range. The result is a CUresult.
int softgpuMemoryWindow(int device, void** base, std::size_t* bytes, CUipcMemHandle* handle);
}
