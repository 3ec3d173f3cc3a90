// What the software GPU's libcuda.so.1 offers beyond CUDA's own calls: work for threads that run kernels which wait.
#pragma once

#include <cstdint>

extern "C" {
/// Kernels of the software GPU run on the thread that waits for them, or on the device's own. Where they wait for what
/// another thread of the process has to bring, such as the driver of a network, the two would hand each step to each
/// other; so the one that runs kernels can do the other's work.
///
/// `turn` does what can be done at once, and returns whether that was anything (not 0). It is called again and again,
/// by any thread that has just found all kernels of the process waiting, with no lock of the software GPU's and all
/// signals blocked, by several threads at a time; it must neither wait nor add or remove a hook. `leave`, under the
/// same rules: the calling thread, which has taken turns, does something else from now on. Both get `argument`.
///
/// The results are CUresults; CUDA_ERROR_OUT_OF_MEMORY where there are too many hooks.
int softgpuAddIdleHook(int (*turn)(void* argument), void (*leave)(void* argument), void* argument,
                       std::uint64_t* ticket);
/// When it returns, nobody is in the hook or enters it again. Waits for turns under way. Once for each ticket.
int softgpuRemoveIdleHook(std::uint64_t ticket);
}
