// What libFuzzer calls, for every target; built and run by ./run.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "target.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tutti::fuzz::silenceLog();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = tutti::fuzz::driveTarget({reinterpret_cast<const char*>(data), size});
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  __builtin_trap();
}
