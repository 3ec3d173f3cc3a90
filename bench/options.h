// Command line of the benchmarks, as nccl-tests' users know it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "nccl.h"

namespace bench {

struct Options {
  std::size_t minBytes = 32u << 20;
  std::size_t maxBytes = 32u << 20;
  std::size_t stepBytes = 1u << 20;
  double stepFactor = 1.0;  ///< > 1: multiply, else add stepBytes
  int processes = 1;        ///< forked before CUDA starts
  int threads = 1;          ///< per process
  int gpus = 1;             ///< ranks per thread, driven in one group
  int iterations = 20;
  int warmup = 5;
  int graphLaunches = 0;  ///< > 0: the timed calls are captured once, and this graph is replayed so often
  int repeats = 1;        ///< timings of `iterations` calls each, of which the median counts
  int check = 1;          ///< how many of the measured runs are verified: 0 none
  int root = 0;
  int average = 1;             ///< over ranks: 0 rank 0, 1 mean, 2 minimum, 3 maximum
  bool blockingCalls = false;  ///< -z: wait after every call
  bool fresh = false;          ///< the device writes the input anew before every timed call
  std::vector<ncclDataType_t> types{ncclFloat32};
  std::vector<ncclRedOp_t> ops{ncclSum};
  std::string jsonFile;            ///< "-": standard output in place of the table
  std::function<void(int)> enter;  ///< what a process, told its number, does before anything else; may be empty

  int ranks() const { return processes * threads * gpus; }
};

/// Parses argv; on --help or a mistake prints what to say and returns the exit code in `exitCode` with false.
bool parseOptions(int argc, char** argv, const char* program, Options* options, int* exitCode);

/// "64M" -> 67108864: K, M, G are powers of 1024. False if it is not a size.
bool parseBytes(const std::string& text, std::size_t* bytes);

}  // namespace bench
