// What is known of a communicator when it is decided how an operation runs, and what combinations of algorithm and
// protocol cost there. Plain values, equal on all ranks, so that all ranks come to the same decision without a word.
//
//   makeTuning(facts)          tuning_model.h   once per communicator: latency and bandwidth of every combination
//   chooseCollective(tuning, request)   tuning_choice.h   per collective: weighs them, takes the quickest
//   chooseMessage(tuning, bytes, …)     tuning_choice.h   per message: both its ends come to the same answer
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "comm/tuning/collnet_facts.h"
#include "comm/tuning/filter.h"
#include "comm/tuning/thread_thresholds.h"
#include "device/policy.h"
#include "device/work.h"
#include "nccl.h"
#include "topo/channels/costs_constants.h"
#include "topo/channels/graph_speed.h"

namespace tutti::comm {

/// The longest path between two ranks of one node.
enum class PathClass : std::uint8_t { NVLink, Pci };

/// Who the ranks are. Equal on all of them.
struct RankFacts {
  int nRanks = 1;
  int nNodes = 1;
  int computeCapability = 0;  ///< major * 10 + minor, the lowest of all ranks; not used on the software GPU
  PathClass path = PathClass::Pci;
  bool ll128Safe = false;       ///< every link keeps 128-byte stores whole: see ll128IsSafe()
  bool amdOrMixedCpus = false;  ///< across nodes the LL bandwidth depends on the host's CPU
  int mostOnOneDevice = 1;      ///< ranks that share a GPU
};

/// What the connections of a communicator can carry. Equal on all ranks.
struct Speeds {
  topo::GraphSpeed ring;
  topo::GraphSpeed tree;
  topo::GraphSpeed pat;
  double mesh = 0;  ///< GB/s from one rank to all others together; 0: not every pair is connected
};

/// Which kernels there are: device::kernelExists(), unless a test asks what would be chosen if there were others.
using KernelFilter = bool (*)(device::Func, device::Algorithm, device::Protocol, device::DevOp, ncclDataType_t);

/// Everything the tuner knows. Equal on all ranks.
struct TuningInput {
  RankFacts ranks;
  Speeds speeds;
  unsigned nChannels = 1;                                         ///< of the communicator
  std::array<device::SlotBytes, device::kConnKinds> slotBytes{};  ///< as connections are made; 0: no such buffers
  std::uint32_t inPlaceStep = 0;                                  ///< bytes of a step of a message over a network
  std::uint8_t stepsInPlace = 0;               ///< of them a chunk, where all ranks receive in place; 0: not all do
  device::Policy policy = device::kGpuPolicy;  ///< its world decides between the cost tables
  bool threadsGiven = false;                   ///< the user said how many: no rule about links lowers the policy's
  ThreadThresholds thresholds;                 ///< NCCL_THREAD_THRESHOLDS
  CollNetFacts collNet;
  TuningFilter filter;
  KernelFilter kernelExists = nullptr;              ///< null: device::kernelExists()
  std::optional<topo::costs::Constants> constants;  ///< as a tuner plugin has changed them; nothing: usualConstants()
};

/// One combination of collective, algorithm and protocol: `latencyUs + bytes / bandwidth` is its time.
struct Cost {
  double latencyUs = 0;
  double bandwidth = 0;  ///< GB/s of the size as applications count it; 0: the combination is out
};

/// Why a combination is out, or that it is not.
enum class Verdict : std::uint8_t {
  Possible,
  NotAllowed,
  NoConnections,
  NoBuffers,
  TooManyRanks,
  Unsafe,
  NotInNetwork,  ///< the network does not combine that type by that operation
  NoKernel
};

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

}  // namespace tutti::comm
