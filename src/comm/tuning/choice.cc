#include "comm/tuning/choice.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "comm/tuning/advice.h"
#include "comm/tuning/constants.h"
#include "comm/tuning/costs.h"
#include "comm/tuning/model.h"
#include "comm/tuning/refusals.h"
#include "device/collnet_cut.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

// What the host asks a network for is what kernels tell it.
static_assert(device::networkOp(device::DevOp::Sum) == ncclSum && device::networkOp(device::DevOp::Prod) == ncclProd &&
              device::networkOp(device::DevOp::Max) == ncclMax && device::networkOp(device::DevOp::Min) == ncclMin &&
              device::networkOp(device::DevOp::PreMulSum) == ncclSum &&
              device::networkOp(device::DevOp::SumPostDiv) == ncclSum);

KernelFilter kernelOf(const Tuning& tuning) {
  return tuning.input.kernelExists != nullptr ? tuning.input.kernelExists : device::kernelExists;
}

/// Collectives of a group that one launch works off together where the algorithm is not a ring.
constexpr unsigned kCollectivesPerBatch = 8;

/// A long ring rounds 8-bit floats once per hop: taken only where nothing else is left.
constexpr int kLongRing = 8;
constexpr double kInaccurate = 1024;

/// Below this a chunk of a pipeline costs more in waits than its early departure gains, by protocol.
constexpr std::array<std::uint64_t, device::kProtocols> kMinPipelineChunk{4 << 10, 16 << 10, 32 << 10};

constexpr unsigned divideUp(unsigned a, unsigned b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

bool isFp8(ncclDataType_t type) {
  return type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

unsigned usableChannels(const TuningInput& input) {
  return std::max(1U, std::min(input.nChannels, input.policy.maxChannels));
}

/// Collectives of a group that a channel works off one after another.
unsigned perPipelineOf(const Tuning& tuning, const Request& request) {
  return divideUp(std::max(request.inGroup, 1U), usableChannels(tuning.input));
}

double treeEfficiency(const Tuning& tuning, device::Protocol protocol, std::uint64_t bytes) {
  if (tuning.input.policy.world == device::World::Host) return 1;
  const std::uint64_t units = bytes / 64;
  const auto& row = costs::kTreeEfficiency[static_cast<std::size_t>(protocol)];
  const auto log = static_cast<std::size_t>(std::bit_width(units));  // floor(log2) + 1; 0 below 64 bytes
  return log == 0 || log > row.size() ? 1 : row[log - 1];
}

/// The latency of a candidate on the software GPU, where hops of little data are cheap.
double hostLatency(const Tuning& tuning, const Cost& cost, const Candidate& candidate, std::uint64_t bytes) {
  if (candidate.protocol != device::Protocol::Simple || isMesh(candidate.algorithm) || bytes > costs::kHostShortBytes) {
    return cost.latencyUs;
  }
  const auto& ofAlgorithm = constantsOf(tuning.input).base[static_cast<std::size_t>(candidate.algorithm)];
  const double base = ofAlgorithm[static_cast<std::size_t>(device::Protocol::Simple)];
  return base + (cost.latencyUs - base) * costs::kHostShortHop;
}

/// The bandwidth of a candidate on the software GPU, where two ranks of one host exchange what a ring of two would
/// reduce.
double hostBandwidth(const Tuning& tuning, const Cost& cost, const Candidate& candidate, const Request& request) {
  const bool pair = tuning.input.ranks.nRanks == 2 && tuning.input.speeds.mesh > 0 &&
                    request.func == device::Func::AllReduce && candidate.algorithm == device::Algorithm::Ring &&
                    candidate.protocol == device::Protocol::Simple;
  if (!pair || request.bytes < costs::kHostPairBytes) return cost.bandwidth;
  return costs::kHostGraph[static_cast<std::size_t>(device::Protocol::Simple)].touch / costs::kHostPairTouches;
}

/// Fills in the times of one candidate.
void estimate(const Tuning& tuning, const Request& request, Candidate& candidate) {
  const TuningInput& in = tuning.input;
  const Cost& cost = tuning.costs[static_cast<std::size_t>(request.func)][static_cast<std::size_t>(candidate.algorithm)]
                                 [static_cast<std::size_t>(candidate.protocol)];
  const bool ring = candidate.algorithm == device::Algorithm::Ring;
  const bool onHost = in.policy.world == device::World::Host;
  double latency = onHost ? hostLatency(tuning, cost, candidate, request.bytes) : cost.latencyUs;
  double bandwidth = onHost ? hostBandwidth(tuning, cost, candidate, request) : cost.bandwidth;
  if (candidate.algorithm == device::Algorithm::Tree)
    bandwidth *= treeEfficiency(tuning, candidate.protocol, request.bytes);
  // Plateau of many nodes: a ring of large parts runs into the network's own queues.
  const std::uint64_t parts = std::uint64_t{usableChannels(in)} * static_cast<std::uint64_t>(in.ranks.nRanks);
  const std::uint64_t perStep = request.bytes / parts;
  if (ring && candidate.protocol == device::Protocol::Simple && in.ranks.nNodes > 1 &&
      request.func == device::Func::AllReduce && perStep >= 64) {
    latency *= in.ranks.computeCapability < 80 ? 1.9 : 1.4;
  }
  const unsigned perPipeline = perPipelineOf(tuning, request);
  candidate.latencyUs = latency * (ring ? perPipeline : divideUp(perPipeline, kCollectivesPerBatch));
  const double transfer = bandwidth > 0 ? static_cast<double>(request.bytes) / (1000 * bandwidth) : 0;
  candidate.microseconds = candidate.latencyUs + transfer;
  if (ring && device::reduces(request.func) && isFp8(request.type) && in.ranks.nRanks > kLongRing) {
    candidate.microseconds *= kInaccurate;
  }
}

/// Threads that the links of a ring can keep busy: few where all channels together are no faster than PCI of the third
/// generation.
unsigned mostThreads(const TuningInput& in, device::Algorithm algorithm, device::Protocol protocol) {
  constexpr double kSlowLinks = 12;
  constexpr unsigned kThreadsOfSlowLinks = 256;
  const unsigned most = in.policy.collThreads[static_cast<std::size_t>(protocol)];
  const bool slow = algorithm == device::Algorithm::Ring && protocol == device::Protocol::Simple &&
                    in.speeds.ring.intra * in.speeds.ring.lanes(in.nChannels) <= kSlowLinks;
  return slow && !in.threadsGiven ? std::min(most, kThreadsOfSlowLinks) : most;
}

/// All lanes take part in every step of the network's, and each crew of a block has its own work.
void shapeCollNet(const TuningInput& in, Choice& choice) {
  constexpr unsigned kWarp = 32;
  constexpr unsigned kFewest = device::kCollNetRoles * kWarp;
  const bool onHost = in.policy.world == device::World::Host;
  choice.nChannels = usableChannels(in);
  choice.nThreads = onHost ? device::kCollNetRoles
                           : std::max(in.policy.collThreads[static_cast<std::size_t>(choice.protocol)], kFewest);
}

/// A step of the network's is the more efficient the longer it is, but a vector needs some of them under way.
void cutCollNet(const TuningInput& in, const Request& request, Choice& choice) {
  constexpr std::uint64_t kLeast = 32 << 10;
  constexpr std::uint64_t kStepsAtLeast = 4;
  const bool direct = choice.algorithm == device::Algorithm::CollNetDirect;
  const std::uint64_t shares =
      std::uint64_t{choice.nChannels} * (direct ? static_cast<unsigned>(in.collNet.heads) : 1U);
  const std::uint64_t wanted = std::max(request.bytes / shares / kStepsAtLeast, kLeast);
  const std::uint64_t grains = std::min<std::uint64_t>(wanted, in.collNet.slotBytes) / device::kGrainBytes;
  choice.chunkBytes = static_cast<std::uint32_t>(grains * device::kGrainBytes);
  choice.stepsPerChunk = 1;
}

/// Fewer channels, unless a plugin wants so many, then fewer threads, the less there is to do for each.
void shape(const Tuning& tuning, const Request& request, unsigned wantedChannels, Choice& choice) {
  const TuningInput& in = tuning.input;
  const std::uint64_t perThread = threadThreshold(in, choice.algorithm, choice.protocol);
  const CallOptions& options = request.options;
  unsigned most =
      options.maxChannels > 0 ? std::min<unsigned>(options.maxChannels, usableChannels(in)) : usableChannels(in);
  unsigned least = std::clamp<unsigned>(options.minChannels, 1, most);
  if (wantedChannels > 0) least = most = std::clamp(wantedChannels, least, most);
  choice.nChannels = most;
  choice.nThreads = mostThreads(in, choice.algorithm, choice.protocol);
  const auto tooLittle = [&] { return request.bytes < std::uint64_t{choice.nChannels} * choice.nThreads * perThread; };
  while (choice.nChannels > least && tooLittle()) --choice.nChannels;
  constexpr unsigned kHalvable = 128;
  while (choice.nThreads % kHalvable == 0 && tooLittle()) choice.nThreads /= 2;
}

/// How many ranks one after another a byte passes, where all bytes take the same way; 0 elsewhere.
std::uint64_t pipelineDepth(const RankFacts& ranks, device::Func func, device::Algorithm algorithm) {
  const auto n = static_cast<std::uint64_t>(ranks.nRanks);
  const auto m = static_cast<std::uint64_t>(std::max(ranks.nNodes, 1));
  if (algorithm == device::Algorithm::Tree) {
    return std::max<std::uint64_t>(n / m - 1 + static_cast<std::uint64_t>(std::bit_width(m) - 1), 1);
  }
  const bool chain =
      algorithm == device::Algorithm::Ring && (func == device::Func::Broadcast || func == device::Func::Reduce);
  return chain && n > 1 ? n - 1 : 0;
}

device::ChunkShape fullChunk(const TuningInput& in, const Request& request, const Choice& choice) {
  const device::ConnKind kind = isMesh(choice.algorithm) ? device::ConnKind::Mesh : device::ConnKind::Graph;
  const std::uint32_t slot = in.slotBytes[static_cast<std::size_t>(kind)][static_cast<std::size_t>(choice.protocol)];
  return device::chunkShape(request.func, choice.algorithm, choice.protocol, slot);
}

/// What a tuner plugin may make of a chunk at most.
std::uint32_t mostChunk(const TuningInput& in, const Request& request, const Choice& choice) {
  return isCollNet(choice.algorithm) ? in.collNet.slotBytes : fullChunk(in, request, choice).chunkBytes;
}

/// A pipeline of d ranks takes d - 1 chunks of time before the last sees the first byte: the less there is to move,
/// the smaller the chunk.
void cut(const Tuning& tuning, const Request& request, Choice& choice) {
  const TuningInput& in = tuning.input;
  const auto p = static_cast<std::size_t>(choice.protocol);
  const device::ChunkShape full = fullChunk(in, request, choice);
  choice.chunkBytes = full.chunkBytes;
  choice.stepsPerChunk = full.stepsPerChunk;
  const std::uint64_t depth = pipelineDepth(in.ranks, request.func, choice.algorithm);
  if (depth == 0) return;
  const std::uint64_t wanted = std::max(request.bytes / choice.nChannels / (4 * depth), kMinPipelineChunk[p]);
  const std::uint64_t grains = std::min<std::uint64_t>(wanted, full.chunkBytes) / device::kGrainBytes;
  choice.chunkBytes = static_cast<std::uint32_t>(grains * device::kGrainBytes);
}

/// Two ranks exchange what they reduce: one hop. Over a network all of it may be on the way at once, and of long
/// vectors the ring keeps less there, least in place (docs/measurements/network.md). Where the kernel can
/// (device/kernels/kernels.h).
device::PairMethod pairWayFor(const TuningInput& in, const Request& request, const Choice& choice) {
  using device::PairMethod;
  constexpr std::uint64_t kMostOverNetwork = 1 << 20;
  constexpr std::uint64_t kMostBesideInPlace = 512 << 10;
  const bool pair =
      choice.algorithm == device::Algorithm::Ring && request.func == device::Func::AllReduce && in.ranks.nRanks == 2;
  if (!pair) return device::PairMethod::Ring;
  const bool joinedByMemory = in.speeds.mesh > 0;
  if (joinedByMemory) return device::PairMethod::Exchange;
  const bool inPlace = in.stepsInPlace != 0 && choice.protocol == device::Protocol::Simple;
  if (inPlace && request.bytes > kMostBesideInPlace) return device::PairMethod::InPlace;
  return request.bytes <= kMostOverNetwork ? device::PairMethod::Exchange : device::PairMethod::Ring;
}

}  // namespace

std::array<Candidate, kCandidates> weigh(const Tuning& tuning, const Request& request) {
  std::array<Candidate, kCandidates> table{};
  for (std::size_t i = 0; i < kCandidates; ++i) {
    const std::size_t a = i / device::kProtocols;
    const std::size_t p = i % device::kProtocols;
    Candidate& candidate = table[i];
    candidate.algorithm = static_cast<device::Algorithm>(a);
    candidate.protocol = static_cast<device::Protocol>(p);
    const Selection& selection = request.options.selection;
    candidate.verdict = selection.given()
                            ? verdictOf(tuning.input, request.func, candidate.algorithm, candidate.protocol, selection)
                            : tuning.verdicts[static_cast<std::size_t>(request.func)][a][p];
    if (candidate.verdict != Verdict::Possible) continue;
    if (!kernelOf(tuning)(request.func, candidate.algorithm, candidate.protocol, request.op, request.type)) {
      candidate.verdict = Verdict::NoKernel;
      continue;
    }
    if (isCollNet(candidate.algorithm) && device::reduces(request.func) &&
        !tuning.input.collNet.reduces.has(request.type, static_cast<ncclRedOp_t>(device::networkOp(request.op)))) {
      candidate.verdict = Verdict::NotInNetwork;
      continue;
    }
    estimate(tuning, request, candidate);
  }
  return table;
}

namespace {

std::optional<Candidate> quickest(const std::array<Candidate, kCandidates>& table) {
  std::optional<Candidate> best;
  for (const Candidate& candidate : table) {
    if (candidate.verdict != Verdict::Possible) continue;
    if (!best || candidate.microseconds < best->microseconds) best = candidate;
  }
  return best;
}

/// The best of all, by the model and the plugin; sets the times of `choice`. The plugin's number of channels, 0: none.
Result<unsigned> takeBest(const Tuning& tuning, const Request& request, TunerAdvice* advice, Choice& choice) {
  auto table = weigh(tuning, request);
  std::optional<Candidate> best = quickest(table);
  if (!best && request.options.selection.given() && !request.options.selection.forced) {
    Request free = request;
    free.options.selection = {};
    table = weigh(tuning, free);
    best = quickest(table);
  }
  if (!best) return nothingLeft(tuning, request);
  unsigned nChannels = 0;
  if (advice != nullptr) {
    ASSIGN(const AdvisedChoice advised, adviseOn(*advice, request, perPipelineOf(tuning, request), table, *best));
    if (!advised.best) return forbidden(tuning, request, advice->name());
    best = advised.best;
    choice.byPlugin = advised.changed;
    nChannels = advised.nChannels;
  }
  choice.algorithm = best->algorithm;
  choice.protocol = best->protocol;
  choice.latencyUs = best->latencyUs;
  choice.microseconds = best->microseconds;
  return nChannels;
}

}  // namespace

Result<Choice> chooseCollective(const Tuning& tuning, const Request& request, TunerAdvice* advice) {
  const TuningInput& in = tuning.input;
  Choice choice;
  unsigned wantedChannels = 0;
  if (in.ranks.nRanks > 1) {
    ASSIGN(wantedChannels, takeBest(tuning, request, advice, choice));
  } else if (!kernelOf(tuning)(request.func, choice.algorithm, choice.protocol, request.op, request.type)) {
    return nothingLeft(tuning, request);
  }
  if (isCollNet(choice.algorithm)) {
    shapeCollNet(in, choice);
    cutCollNet(in, request, choice);
  } else {
    shape(tuning, request, wantedChannels, choice);
    cut(tuning, request, choice);
    choice.pairMethod = pairWayFor(in, request, choice);
  }
  if (choice.pairMethod == device::PairMethod::InPlace) {
    choice.chunkBytes = in.inPlaceStep * in.stepsInPlace;
    choice.stepsPerChunk = in.stepsInPlace;
  } else if (advice != nullptr && in.ranks.nRanks > 1) {
    TRY(adviseChunk(*advice, request, mostChunk(in, request, choice), choice));
  }
  return choice;
}

std::uint64_t threadThreshold(const TuningInput& input, device::Algorithm algorithm, device::Protocol protocol) {
  const auto p = static_cast<std::size_t>(protocol);
  const bool ring = algorithm == device::Algorithm::Ring;
  const std::int64_t given = ring                                   ? input.thresholds.ring[p]
                             : algorithm == device::Algorithm::Tree ? input.thresholds.tree[p]
                                                                    : -1;
  if (given >= 0) return static_cast<std::uint64_t>(given);
  const std::uint64_t usual = input.policy.bytesPerThread[p];
  return ring && protocol == device::Protocol::LL ? usual * static_cast<std::uint64_t>(input.ranks.nRanks) : usual;
}

MessageChoice chooseMessage(const Tuning& tuning, std::uint64_t bytes, unsigned mostChannels, bool toSelf) {
  const TuningInput& in = tuning.input;
  const std::uint64_t wanted = bytes / in.policy.messagePerChannel + (bytes % in.policy.messagePerChannel != 0 ? 1 : 0);
  MessageChoice choice;
  choice.nChannels = static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, mostChannels));
  const auto mesh = static_cast<std::size_t>(device::ConnKind::Mesh);
  const bool buffers = in.slotBytes[mesh][static_cast<std::size_t>(device::Protocol::LL)] > 0;
  if (!toSelf && buffers && bytes <= choice.nChannels * in.policy.llMessageBytes)
    choice.protocol = device::Protocol::LL;

  const auto p = static_cast<std::size_t>(choice.protocol);
  const bool onHost = in.policy.world == device::World::Host;
  const auto link = in.ranks.path == PathClass::NVLink ? topo::costs::kNvlink : topo::costs::kPci;
  constexpr double kReadAndWrite = 4;  // the sender's copy and the receiver's
  choice.latencyUs = onHost ? costs::kHostMesh[p].base + costs::kHostMesh[p].hop
                            : topo::costs::kRingBase[p] + topo::costs::kRingHop[link][p];
  const double speed =
      onHost ? costs::kHostMesh[p].touch / kReadAndWrite : std::max(in.speeds.mesh, in.speeds.ring.intra);
  choice.microseconds = choice.latencyUs + (speed > 0 ? static_cast<double>(bytes) / (1000 * speed) : 0);
  return choice;
}

}  // namespace tutti::comm
