// The driver API's types and prototypes. Its functions are what this library exports, hence the visibility.
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>  // IWYU pragma: export
#pragma GCC visibility pop
