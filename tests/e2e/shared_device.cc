// Preloaded into a program, has its ranks share the devices that are there: the program sees TUTTI_TEST_DEVICES of them
// (8 unless set), and device number N is device N modulo those that there are. With it, tests written for a machine of
// several GPUs run on one GPU.
#include <dlfcn.h>

#include <cstdlib>

namespace {

constexpr int kUnknownError = 999;  // cudaErrorUnknown

template <class... Arguments>
int next(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(RTLD_NEXT, name));
  return function == nullptr ? kUnknownError : function(arguments...);
}

int pretended() {
  const char* text = std::getenv("TUTTI_TEST_DEVICES");
  const int number = text == nullptr ? 0 : std::atoi(text);
  return number > 0 ? number : 8;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int cudaGetDeviceCount(int* count) {
  int real = 0;
  const int result = next("cudaGetDeviceCount", &real);
  *count = result == 0 && real > 0 ? pretended() : real;
  return result;
}

__attribute__((visibility("default"))) int cudaSetDevice(int device) {
  int real = 0;
  const int result = next("cudaGetDeviceCount", &real);
  if (result != 0) return result;
  return next("cudaSetDevice", real > 0 ? device % real : device);
}
}
