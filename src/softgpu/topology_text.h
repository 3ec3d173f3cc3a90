// What the software GPU's libcuda.so.1 offers beyond CUDA's own calls: the machine that SOFTGPU_TOPO describes.
#pragma once

#include <cstddef>

extern "C" {
/// The topology file that the devices were made from, cut to the host of this process (SOFTGPU_HOST), with GPUs
/// numbered (`dev`) as CUDA does without CUDA_VISIBLE_DEVICES. `path`: the file, for messages. Both stay for the life
/// of the process. CUDA_ERROR_NOT_FOUND where no file was named or it was not fit for use. The result is a CUresult.
int softgpuTopology(const char** text, std::size_t* bytes, const char** path);
}
