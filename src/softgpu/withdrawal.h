// What the software GPU's libcuda.so.1 offers beyond CUDA's own calls: host functions that end before the process.
#pragma once

extern "C" {
/// Host functions are called by threads of the driver's, until the process has ended. Whoever goes earlier, as an
/// interpreter does or a library that is unloaded, withdraws its own: from the return on no call of `function` begins
/// anywhere in the process, whether a stream, a graph's node or a user object has it. Nodes count as done without it,
/// and later launches are reported on standard error.
///
/// Calls that streams and launched graphs are still to make are waited for, for so many milliseconds at most, and then
/// as long for those under way. A destructor of user objects is waited for only while it runs. The result is a
/// CUresult: CUDA_ERROR_NOT_READY where calls were left out, CUDA_ERROR_TIMEOUT where one still runs, and
/// CUDA_ERROR_NOT_PERMITTED from a host function, which would wait for itself: nothing is withdrawn then.
int softgpuWithdrawHostFunction(void (*function)(void* data), unsigned milliseconds);
}
