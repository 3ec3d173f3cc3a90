#include "comm/plan/plan_collectives.h"

#include <algorithm>

#include "comm/plan/plan_context.h"
#include "comm/tuning/choice.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

/// The kernels' name for a collective. Never called for messages.
device::Func deviceFunc(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllReduce:
      return device::Func::AllReduce;
    case ApiFunc::Reduce:
      return device::Func::Reduce;
    case ApiFunc::Broadcast:
      return device::Func::Broadcast;
    case ApiFunc::AllGather:
      return device::Func::AllGather;
    case ApiFunc::ReduceScatter:
      return device::Func::ReduceScatter;
    case ApiFunc::Send:
    case ApiFunc::Recv:
    case ApiFunc::AlltoAll:
    case ApiFunc::Gather:
    case ApiFunc::Scatter:
      return device::Func::SendRecv;
  }
  return device::Func::SendRecv;
}

bool isCarriedOut(const Op& op) {
  return !isMessageFunc(op.func) && op.count > 0;
}

device::CollWork workFor(const Op& op, const Decision& decision, ncclDataType_t kernelType) {
  device::CollWork work{};
  work.send = op.sendbuff;
  work.recv = op.recvbuff;
  work.count = op.count * device::typeBytes(op.datatype) / device::typeBytes(kernelType);
  work.scalar = op.reduction.scalar;
  work.scalarIsPointer = op.reduction.scalarIsPointer ? 1 : 0;
  work.op = decision.request.op;
  work.root = op.root;
  work.chunkBytes = decision.choice.chunkBytes;
  work.stepsPerChunk = decision.choice.stepsPerChunk;
  work.pairMethod = decision.choice.pairMethod;
  work.type = static_cast<std::uint8_t>(op.datatype);
  work.channelLo = static_cast<std::uint8_t>(decision.channelLo);
  work.channelHi = static_cast<std::uint8_t>(decision.channelHi);
  return work;
}

}  // namespace

Status CollectivePlanner::plan(const PlanContext& context, std::span<const Op> ops, Plan& plan) {
  context_ = &context;
  plan_ = &plan;
  kernels_.clear();
  kernelOf_.clear();
  TRY(decide(ops));
  layOut(ops);
  return {};
}

bool CollectivePlanner::KernelLaunches::runs(const KernelShape& other) const {
  return shape.func == other.func && shape.algorithm == other.algorithm && shape.protocol == other.protocol &&
         device::sharesKernel(shape.op, other.op) && shape.type == other.type;
}

/// First every decision: how many channels a collective gets depends on what it shares them with.
Status CollectivePlanner::decide(std::span<const Op> ops) {
  const auto inGroup = static_cast<unsigned>(std::count_if(ops.begin(), ops.end(), isCarriedOut));
  for (const Op& op : ops) {
    if (!isCarriedOut(op)) continue;
    Decision decision;
    decision.request = requestFor(op, inGroup);
    ASSIGN(decision.choice, chooseCollective(context_->tuning, decision.request, context_->tuner.get()));
    kernelOf_.push_back(kernelFor(decision));
    kernels_[kernelOf_.back()].bytes += decision.request.bytes;
    plan_->decisions.push_back(decision);
  }
  return {};
}

void CollectivePlanner::layOut(std::span<const Op> ops) {
  std::size_t index = 0;
  for (const Op& op : ops) {
    if (!isCarriedOut(op)) continue;
    append(op, plan_->decisions[index], kernels_[kernelOf_[index]]);
    ++index;
  }
}

Request CollectivePlanner::requestFor(const Op& op, unsigned inGroup) const {
  Request request;
  request.func = deviceFunc(op.func);
  request.op = device::reduces(request.func) ? op.reduction.op : device::DevOp::Sum;
  request.type = op.datatype;
  const bool blocks = request.func == device::Func::AllGather || request.func == device::Func::ReduceScatter;
  request.bytes =
      op.count * device::typeBytes(op.datatype) * (blocks ? static_cast<std::uint64_t>(context_->nRanks()) : 1);
  request.inGroup = inGroup;
  request.options = op.options;
  request.registered = op.registered;
  return request;
}

std::size_t CollectivePlanner::kernelFor(const Decision& decision) {
  KernelShape shape;
  shape.func = decision.request.func;
  shape.algorithm = decision.choice.algorithm;
  shape.protocol = decision.choice.protocol;
  shape.op = decision.request.op;
  shape.type = device::kernelType(shape.func, shape.op, decision.request.type);
  const auto known =
      std::find_if(kernels_.begin(), kernels_.end(), [&](const KernelLaunches& kernel) { return kernel.runs(shape); });
  if (known != kernels_.end()) return static_cast<std::size_t>(known - kernels_.begin());
  kernels_.push_back({.shape = shape, .current = kNone});
  return kernels_.size() - 1;
}

/// Its share of the channels among all that run the same kernel, and no more than are good for it. A network that
/// reduces has all of them in every step.
unsigned CollectivePlanner::channelsFor(const Decision& decision, const KernelLaunches& kernel) const {
  if (isCollNet(decision.choice.algorithm)) return decision.choice.nChannels;
  const unsigned usable = usableChannels(*context_);
  if (decision.request.bytes >= kernel.bytes) return decision.choice.nChannels;
  const double part = static_cast<double>(decision.request.bytes) / static_cast<double>(kernel.bytes);
  const auto share = static_cast<unsigned>(part * usable) + 1;
  return std::min(std::max<unsigned>(share, decision.request.options.minChannels), decision.choice.nChannels);
}

/// The first of `channels` neighbours of which the busiest has the least to do.
unsigned CollectivePlanner::leastLoaded(const KernelLaunches& kernel, unsigned channels) const {
  unsigned best = 0;
  std::uint64_t bestLoad = ~std::uint64_t{0};
  for (unsigned lo = 0; lo + channels <= usableChannels(*context_); ++lo) {
    const std::uint64_t load = *std::max_element(kernel.load.begin() + lo, kernel.load.begin() + lo + channels);
    if (load >= bestLoad) continue;
    best = lo;
    bestLoad = load;
  }
  return best;
}

PlannedLaunch& CollectivePlanner::openLaunch(KernelLaunches& kernel) {
  std::vector<PlannedLaunch>& launches = plan_->launches;
  if (kernel.current == kNone || launches[kernel.current].nWorks() == device::kMaxWorksPerLaunch) {
    kernel.current = launches.size();
    kernel.load = {};
    launches.emplace_back(kernel.shape);
  }
  return launches[kernel.current];
}

void CollectivePlanner::append(const Op& op, Decision& decision, KernelLaunches& kernel) {
  PlannedLaunch& launch = openLaunch(kernel);
  const Choice& choice = decision.choice;
  const unsigned channels = channelsFor(decision, kernel);
  decision.channelLo = leastLoaded(kernel, channels);
  decision.channelHi = decision.channelLo + channels - 1;
  // A byte more than there is, so that collectives of next to nothing are spread too.
  const std::uint64_t each = decision.request.bytes / channels + 1;
  for (unsigned c = decision.channelLo; c <= decision.channelHi; ++c) kernel.load[c] += each;
  launch.widen(decision.channelLo, decision.channelHi, choice.nThreads);
  launch.latencyUs = std::max(launch.latencyUs, choice.latencyUs);
  launch.transferUs += choice.microseconds - choice.latencyUs;
  launch.add(workFor(op, decision, launch.type));
  if (choice.pairMethod == device::PairMethod::InPlace) {
    useMesh();
  } else {
    use(choice.algorithm);
  }
}

void CollectivePlanner::use(device::Algorithm algorithm) {
  switch (algorithm) {
    case device::Algorithm::Ring:
      plan_->usesRing = true;
      return;
    case device::Algorithm::Tree:
      plan_->usesTree = true;
      return;
    case device::Algorithm::Pat:
      plan_->usesPat = true;
      return;
    case device::Algorithm::OneShot:
    case device::Algorithm::Direct:
      return useMesh();
    case device::Algorithm::CollNetDirect:
      plan_->usesCollNetDirect = true;
      return;
    case device::Algorithm::CollNetChain:
      plan_->usesCollNetChain = true;
      return;
    case device::Algorithm::Nvls:
    case device::Algorithm::NvlsTree:
      return;
  }
}

void CollectivePlanner::useMesh() {
  if (!plan_->meshPeers.empty()) return;
  for (int rank = 0; rank < context_->nRanks(); ++rank) {
    if (rank != context_->rank) plan_->meshPeers.push_back(rank);
  }
}

}  // namespace tutti::comm
