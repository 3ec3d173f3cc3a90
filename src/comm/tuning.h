// Which algorithm, protocol, channels, threads and chunk serve an operation: pure functions of values that are equal on
// all ranks, so that all ranks come to the same decision without a word.
//
//   makeTuning(facts)          once per communicator: latency and bandwidth of every combination
//   chooseCollective(tuning, request)      per collective: weighs them, takes the quickest
//   chooseMessage(tuning, bytes, …)        per message: both its ends come to the same answer
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/tuning_filter.h"
#include "device/kernel_name.h"
#include "device/policy.h"
#include "device/work.h"
#include "nccl.h"
#include "topo/costs.h"

namespace tutti {

/// The longest way between two ranks of one node.
enum class PathClass : std::uint8_t { NVLink, Pci };

/// Who the ranks are. Equal on all of them.
struct RankFacts {
  int nRanks = 1;
  int nNodes = 1;
  int computeCapability = 0;            ///< major * 10 + minor, the lowest of all ranks; not used on the software GPU
  PathClass path = PathClass::Pci;
  bool ll128Safe = false;               ///< every link keeps 128-byte stores whole: see ll128IsSafe()
  bool amdOrMixedCpus = false;          ///< across nodes the LL bandwidth depends on the host's CPU
};

/// What the connections of a communicator can carry. Equal on all ranks.
struct Speeds {
  GraphSpeed ring;
  GraphSpeed tree;
  GraphSpeed pat;
  double mesh = 0;                      ///< GB/s from one rank to all others together; 0: not every pair is connected
};

/// Which kernels there are: device::kernelExists(), unless a test asks what would be chosen if there were others.
using KernelFilter = bool (*)(device::Func, device::Algorithm, device::Protocol, device::DevOp, ncclDataType_t);

/// Bytes that a thread, or a further channel, of a collective must have to do, by protocol; below 0: what suits the world.
struct ThreadThresholds {
  std::array<std::int64_t, device::kProtocols> tree{-1, -1, -1};
  std::array<std::int64_t, device::kProtocols> ring{-1, -1, -1};
  friend bool operator==(const ThreadThresholds&, const ThreadThresholds&) = default;
};

/// Everything the tuner knows. Equal on all ranks.
struct TuningInput {
  RankFacts ranks;
  Speeds speeds;
  unsigned nChannels = 1;               ///< of the communicator
  std::array<device::SlotBytes, device::kConnKinds> slotBytes{};   ///< as connections are made; 0: no such buffers
  std::uint32_t inPlaceStep = 0;        ///< bytes of a step of a message over a network
  std::uint8_t stepsInPlace = 0;        ///< of them a chunk, where all ranks receive in place; 0: not all do
  device::Policy policy = device::kGpuPolicy;   ///< its world decides between the cost tables
  bool threadsGiven = false;            ///< the user said how many: no rule about links lowers the policy's
  ThreadThresholds thresholds;          ///< NCCL_THREAD_THRESHOLDS
  TuningFilter filter;
  KernelFilter kernelExists = device::kernelExists;
};

/// One combination of collective, algorithm and protocol: `latencyUs + bytes / bandwidth` is its time.
struct Cost {
  double latencyUs = 0;
  double bandwidth = 0;                 ///< GB/s of the size as applications count it; 0: the combination is out
};

/// Why a combination is out, or that it is not.
enum class Verdict : std::uint8_t { Possible, NotAllowed, NoConnections, NoBuffers, TooManyRanks, Unsafe, NoKernel };

/// The tuner of a communicator: a value, made once.
struct Tuning {
  TuningInput input;
  std::array<std::array<std::array<Cost, device::kProtocols>, device::kAlgorithms>, kTunedFuncs> costs{};
  /// The same for verdicts; NoKernel where the combination does not exist at all.
  std::array<std::array<std::array<Verdict, device::kProtocols>, device::kAlgorithms>, kTunedFuncs> verdicts{};
};

/// Algorithms over Mesh connections; all others follow a graph.
constexpr bool isMesh(device::Algorithm algorithm) {
  return algorithm == device::Algorithm::OneShot || algorithm == device::Algorithm::Direct;
}

/// Fills the tables. Never fails: a communicator for which nothing is left fails at its first operation.
Tuning makeTuning(TuningInput input);

/// One collective. Equal on all ranks.
struct Request {
  device::Func func = device::Func::AllReduce;
  device::DevOp op = device::DevOp::Sum;
  ncclDataType_t type = ncclInt8;
  std::uint64_t bytes = 0;              ///< of the larger side: the vector, or all ranks' blocks together
  unsigned inGroup = 1;                 ///< collectives that are planned together with this one, itself included
};

/// How an operation runs.
struct Choice {
  device::Algorithm algorithm = device::Algorithm::Ring;
  device::Protocol protocol = device::Protocol::Simple;
  unsigned nChannels = 1;
  unsigned nThreads = 1;                ///< of a block
  std::uint32_t chunkBytes = 0;         ///< of content, a multiple of device::kGrainBytes
  device::PairWay pairWay = device::PairWay::Ring;
  std::uint8_t stepsPerChunk = 1;
  double latencyUs = 0;                 ///< of microseconds, the part that does not depend on bytes
  double microseconds = 0;              ///< estimate for the whole operation
};

/// One line of the table that was weighed.
struct Candidate {
  device::Algorithm algorithm;
  device::Protocol protocol;
  Verdict verdict;
  double latencyUs;
  double microseconds;                  ///< of no meaning unless Possible
};

inline constexpr std::size_t kCandidates = std::size_t{device::kAlgorithms} * device::kProtocols;

/// Every combination for one request, by algorithm, then protocol.
std::array<Candidate, kCandidates> weigh(const Tuning& tuning, const Request& request);

/// The quickest of them; ties go to the lower algorithm, then the lower protocol. ncclInvalidUsage where NCCL_ALGO and
/// NCCL_PROTO leave nothing for the function; ncclInternalError where nothing is left without them.
Result<Choice> chooseCollective(const Tuning& tuning, const Request& request);

/// What `input.thresholds` come to, as applied.
std::uint64_t threadThreshold(const TuningInput& input, device::Algorithm algorithm, device::Protocol protocol);

/// How one message travels: LL while a channel carries little, then Simple; over more channels the more it carries.
struct MessageChoice {
  device::Protocol protocol = device::Protocol::Simple;
  unsigned nChannels = 1;
  double latencyUs = 0;
  double microseconds = 0;
};

/// A function of bytes and of the channels that messages between the two ranks may use: both ends of a message agree.
/// `toSelf`: source and destination are one rank.
MessageChoice chooseMessage(const Tuning& tuning, std::uint64_t bytes, unsigned mostChannels, bool toSelf);

/// The table that was weighed, on one line: "RING/LL 7.8 us, RING/SIMPLE 15.2 us, …; no kernel: …".
std::string describeCandidates(const Tuning& tuning, const Request& request);

/// Latencies and bandwidths of all combinations, line by line, as rank 0 shows them when the communicator comes up.
std::vector<std::string> describeTuning(const Tuning& tuning);

/// "threadThresholds 8/8/64 | 32/8/64 | 0 | 0": of Tree and Ring by protocol; CollNet and NVLS are not there.
std::string thresholdsLine(const TuningInput& input);

/// Speeds to assume while nobody has searched the topology. `meshed`: P2P connects every pair of ranks. Algorithms
/// without connections have to be set to 0 by the caller.
Speeds assumedSpeeds(const RankFacts& ranks, unsigned nChannels, bool meshed);

/// Speeds that the graphs of all nodes give. The links of the ring are taken to serve the Mesh as well.
Speeds knownSpeeds(const RankFacts& ranks, const GraphSpeeds& graphs, unsigned nChannels, bool meshed);

/// Whether LL128 may run without being asked for. Links within a node: NVLink, or memory of one device; between nodes:
/// the network writes in order (`netKeepsOrder`). All GPUs of one compute capability, or none below 9.0; and none
/// below 7.0.
bool ll128IsSafe(const RankFacts& ranks, int highestComputeCapability, bool netKeepsOrder);

}  // namespace tutti
