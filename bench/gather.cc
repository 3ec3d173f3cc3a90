#include "bench/perf.h"

int main(int argc, char** argv) {
  return bench::runPerf(bench::kGather, argc, argv);
}
