// Counters of communicators in the text form that Prometheus reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "comm/state/op_tally.h"

struct ncclComm;

namespace tutti::comm {

/// What stands for one rank of one communicator. Plain values.
struct CommMetrics {
  std::uint64_t commId = 0;
  std::string name;  ///< commName of the configuration; "": none
  int rank = 0;
  int nRanks = 1;
  int device = 0;
  struct Call {
    const char* collective;  ///< "AllReduce"
    OpCount count;
    double busFactor;  ///< what the bytes are multiplied with for the bus bandwidth
  };
  std::vector<Call> calls;  ///< only those that were made
  struct Kernel {
    std::string algorithm;  ///< "RING"
    std::string protocol;   ///< "SIMPLE"
    OpCount count;
  };
  std::vector<Kernel> kernels;  ///< only those that were launched
  struct Transport {
    std::string name;  ///< as log lines name it: "P2P/direct pointer", "NET/Socket/0"
    std::uint64_t ends = 0;
    std::uint64_t bytes = 0;   ///< that host threads have moved; 0: kernels alone move them
    std::uint64_t stalls = 0;  ///< times that a network could not take a step at once
  };
  std::vector<Transport> transports;
  std::uint64_t persistentBytes = 0;
  std::uint64_t releasableBytes = 0;
  bool kernelsRun = false;
  struct Wait {
    std::string operation;   ///< "AllReduce"
    double seconds = 0;      ///< for which nothing of it has moved, as far as was looked
    std::vector<int> peers;  ///< that it waits for, the first ones
  };
  Wait wait;               ///< no peers: for nobody
  std::string connecting;  ///< the operation whose call waits to be connected; "": none
  std::string error;       ///< "ncclRemoteError"; "": none
};

/// The watch's thread only, or while nobody else ends `comm`. Never waits. Whom it waits for is known where its
/// StallProbe was told to watch() before.
CommMetrics metricsOf(ncclComm& comm, SteadyClock::time_point now);

/// All of a process: a heading and the samples of each metric, whose labels name host, process, communicator and rank.
std::string metricsText(std::span<const CommMetrics> comms);

}  // namespace tutti::comm
