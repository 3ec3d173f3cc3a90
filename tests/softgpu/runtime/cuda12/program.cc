// A program that is linked with CUDA 12's runtime: says which one it got, and which one whoever asks for a function
// without a version gets. Any failure is the exit status.
#include <dlfcn.h>

#include <cstdio>

extern "C" {
int cudaRuntimeGetVersion(int* version);
int cudaGetDeviceCount(int* count);
int cudaMalloc(void** pointer, unsigned long size);
int cudaMemcpy(void* to, const void* from, unsigned long count, int kind);
int cudaFree(void* pointer);
}

int main() {
  int version = 0;
  int unversioned = 0;
  int devices = 0;
  void* memory = nullptr;
  char text[] = "whole";
  char back[sizeof text] = "";
  int failures = cudaRuntimeGetVersion(&version);
  failures |= reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion"))(&unversioned);
  failures |= cudaGetDeviceCount(&devices);
  failures |= cudaMalloc(&memory, sizeof text);
  failures |= cudaMemcpy(memory, text, sizeof text, 1);
  failures |= cudaMemcpy(back, memory, sizeof text, 2);
  failures |= cudaFree(memory);
  std::printf("CUDA %d, without a version %d: %d devices, %s copies, %s\n", version / 1000, unversioned / 1000, devices,
              back, failures == 0 ? "no failures" : "failures");
  return failures;
}
