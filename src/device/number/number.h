// The element types of kernels and their arithmetic: add, multiply, larger, lesser; divide for integers. Integers wrap;
// 8- and 16-bit floats round after every operation; a number wins over a NaN in larger and lesser. `LaneOf<T>`: what
// these work on inside a pack.
#pragma once

#if defined(__CUDACC__)
#include "device/number/number_cuda.h"  // IWYU pragma: export
#else
#include "device/number/number_host.h"  // IWYU pragma: export
#endif
