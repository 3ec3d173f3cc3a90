// Driver calls that tests need and the library does not: looked up in the driver that loadDriver() found.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>

#include "gpu/driver.h"

namespace tutti::test {

/// Address of an entry point of the loaded driver, nullptr where it has none.
template <class F>
F driverCall(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<F>(::dlsym(library, name));
}

#define TUTTI_TEST_TEXT2(x) #x
#define TUTTI_TEST_TEXT(x) TUTTI_TEST_TEXT2(x)
/// DRIVER_CALL(cuMemGetInfo)(&free, &total): the version of the entry point that cuda.h means.
#define DRIVER_CALL(name) ::tutti::test::driverCall<decltype(&::name)>(TUTTI_TEST_TEXT(name))

/// Free bytes of the device whose context is current.
inline std::size_t freeDeviceMemory() {
  std::size_t free = 0;
  std::size_t total = 0;
  return DRIVER_CALL(cuMemGetInfo)(&free, &total) == CUDA_SUCCESS ? free : 0;
}

}  // namespace tutti::test
