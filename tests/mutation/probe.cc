// Runs all primitives that are linked in under weak memory and random schedules until one goes wrong.
//
//   probe SEEDS    exits with 0 when everything was right, 1 otherwise, and says what was wrong
#include <cstdio>
#include <cstdlib>

#include "device/primitive_runs.h"
#include "device/thread_executor.h"

int main(int argc, char** argv) {
  using namespace tutti::device::test;
  const long seeds = argc > 1 ? std::atol(argv[1]) : 20;
  unsigned runs = 0;
  for (long seed = 0; seed < seeds; ++seed) {
    for (const Primitive& primitive : primitives()) {
      if (findKernel(primitiveName(primitive)) == nullptr) continue;
      for (const RunShape& shape : shapesFor(primitive)) {
        const std::string wrong = runPrimitive(primitive, shape, seedsOf(static_cast<std::uint64_t>(seed)));
        ++runs;
        if (wrong.empty()) continue;
        std::printf("%s, %s, seed %ld: %s\n", primitiveName(primitive).c_str(), shapeName(shape).c_str(), seed,
                    wrong.c_str());
        return 1;
      }
    }
  }
  std::printf("%u runs were right\n", runs);
  return runs == 0 ? 1 : 0;
}
