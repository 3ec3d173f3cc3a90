#include <algorithm>

#include "base/log.h"
#include "comm/plan_parts.h"
#include "device/kernel_name.h"

namespace tutti {
namespace {

using device::Func;

/// Below this a chunk costs more in waits than its early departure gains.
constexpr std::uint64_t kMinChainChunk = 32 << 10;

/// The kernels' name for a collective. Never called for messages.
Func deviceFunc(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllReduce: return Func::AllReduce;
    case ApiFunc::Reduce: return Func::Reduce;
    case ApiFunc::Broadcast: return Func::Broadcast;
    case ApiFunc::AllGather: return Func::AllGather;
    case ApiFunc::ReduceScatter: return Func::ReduceScatter;
    case ApiFunc::Send:
    case ApiFunc::Recv:
    case ApiFunc::AlltoAll:
    case ApiFunc::Gather:
    case ApiFunc::Scatter: return Func::SendRecv;
  }
  return Func::SendRecv;
}

/// A chain (Broadcast, Reduce) of n ranks takes n - 2 chunks of time before the last rank sees the first byte: the
/// less there is to move, the smaller the chunk.
std::uint32_t chainChunk(std::uint64_t bytesPerChannel, int nRanks, std::uint32_t fullChunk) {
  const std::uint64_t wanted = bytesPerChannel / (4 * static_cast<std::uint64_t>(std::max(nRanks - 1, 1)));
  const std::uint64_t chunk = std::max(wanted, kMinChainChunk) / device::kGrainBytes * device::kGrainBytes;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk, fullChunk));
}

/// Lays collectives over channels and launches.
class CollectivePlanner {
 public:
  CollectivePlanner(const PlanContext& context, Plan& plan) : context_(context), plan_(plan) {}

  Status add(const Op& op) {
    const Func func = deviceFunc(op.func);
    const device::DevOp devOp = device::reduces(func) ? op.reduction.op : device::DevOp::Sum;
    if (!device::kernelExists(func, device::Algorithm::Ring, device::Protocol::Simple, devOp, op.datatype)) {
      return fail(ncclInvalidUsage, "{}: tutti does not support operator {} on data type {} yet", apiFuncName(op.func),
                  device::devOpName(devOp), device::typeName(op.datatype));
    }
    PlannedLaunch kernel;
    kernel.func = func;
    kernel.op = devOp;
    kernel.type = device::kernelType(func, devOp, op.datatype);
    append(kernel, op);
    return {};
  }

 private:
  void append(const PlannedLaunch& kernel, const Op& op) {
    const std::uint64_t perRank = op.count * device::typeBytes(op.datatype);
    const bool blocks = kernel.func == Func::AllGather || kernel.func == Func::ReduceScatter;
    const std::uint64_t total = perRank * (blocks ? static_cast<std::uint64_t>(context_.nRanks) : 1);
    const unsigned channels = device::channelsFor(context_.policy, total, context_.nChannels);
    const unsigned lo = firstChannel(channels);
    PlannedLaunch& launch = launchFor(kernel);
    widen(launch, lo, lo + channels - 1, device::threadsFor(context_.policy, kernel.func, total / channels));

    const device::ChunkShape shape = device::chunkShape(kernel.func, context_.slotBytesOf(device::ConnKind::Graph, device::Protocol::Simple));
    const bool chain = kernel.func == Func::Broadcast || kernel.func == Func::Reduce;
    device::CollWork work{};
    work.send = op.sendbuff;
    work.recv = op.recvbuff;
    work.count = perRank / device::typeBytes(kernel.type);
    work.scalar = op.reduction.scalar;
    work.scalarIsPointer = op.reduction.scalarIsPointer ? 1 : 0;
    work.op = kernel.op;
    work.root = op.root;
    work.chunkBytes = chain ? chainChunk(total / channels, context_.nRanks, shape.chunkBytes) : shape.chunkBytes;
    work.stepsPerChunk = shape.stepsPerChunk;
    work.channelLo = static_cast<std::uint8_t>(lo);
    work.channelHi = static_cast<std::uint8_t>(lo + channels - 1);
    launch.colls.push_back(work);
    plan_.usesRing = true;
  }

  /// Small collectives in a row run side by side: each takes the next free channels, and starts over at the end.
  unsigned firstChannel(unsigned channels) {
    const unsigned usable = std::max(1U, std::min(context_.nChannels, context_.policy.maxChannels));
    if (nextChannel_ + channels > usable) nextChannel_ = 0;
    const unsigned first = nextChannel_;
    nextChannel_ += channels;
    return first;
  }

  PlannedLaunch& launchFor(const PlannedLaunch& kernel) {
    if (!plan_.launches.empty()) {
      PlannedLaunch& last = plan_.launches.back();
      const bool same = last.func == kernel.func && device::sharesKernel(last.op, kernel.op) && last.type == kernel.type;
      if (same && last.nWorks() < device::kMaxWorksPerLaunch) return last;
    }
    plan_.launches.push_back(kernel);
    return plan_.launches.back();
  }

  const PlanContext& context_;
  Plan& plan_;
  unsigned nextChannel_ = 0;
};

}  // namespace

Status planCollectives(const PlanContext& context, std::span<const Op> ops, Plan& plan) {
  CollectivePlanner planner(context, plan);
  for (const Op& op : ops) {
    if (!isMessageFunc(op.func) && op.count > 0) TRY(planner.add(op));
  }
  return {};
}

}  // namespace tutti
