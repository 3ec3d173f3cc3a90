#include "comm/enqueue/events/expected_steps.h"

#include <algorithm>

#include "comm/collnet/comm_collnet.h"
#include "comm/connect/channels.h"
#include "comm/connect/neighbours.h"
#include "comm/plan/plan_context.h"
#include "comm/state/communicator.h"
#include "device/kernels/kernel_name.h"
#include "proxy/task.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

/// What a channel's kernel sees.
CountedChannel countedChannel(const ncclComm& comm, unsigned channel) {
  const ChannelSet& set = *comm.parts.channels;
  const topo::RankChannels& layout = set.layout();
  CountedChannel counted;
  counted.rank = comm.identity.rank;
  counted.nRanks = comm.identity.nRanks;
  counted.channel = channel;
  counted.world = comm.parts.planning->policy().world;
  counted.ring = layout.ringOf(static_cast<int>(channel));
  counted.place = &layout.channels[channel];
  counted.slots = [&set, channel](int peer, device::ConnKind kind, device::Direction direction) {
    device::SlotBytes slots{};
    const transport::Endpoint* const end = set.endOf(peer, static_cast<int>(channel), kind, direction);
    if (end == nullptr) return slots;
    const transport::ConnView view = end->view();
    std::copy_n(transport::fifosOf(view).slotBytes, slots.size(), slots.begin());
    return slots;
  };
  return counted;
}

}  // namespace

void ExpectedPlan::clear() {
  entries_.clear();
  uncounted_.clear();
}

void ExpectedPlan::set(const ncclComm& comm, std::span<const ToldOperation> told, const Plan& plan) {
  clear();
  if (!comm.parts.channels->driven()) return;
  OperationFinder finder(told);
  for (const PlannedLaunch& launch : plan.launches) {
    device::isCollNet(launch.algorithm) ? addCollNetWorks(comm, launch, finder) : addWorks(comm, launch, finder);
  }
  addUncounted(comm, plan);
}

void ExpectedPlan::addWorks(const ncclComm& comm, const PlannedLaunch& launch, OperationFinder& finder) {
  const CountedKernel kernel{launch.func, launch.algorithm, launch.protocol, launch.op, device::typeBytes(launch.type)};
  for (const device::CollWork& work : launch.colls()) {
    const std::size_t operation = finder.collective(work);
    for (unsigned channel = work.channelLo; channel <= work.channelHi; ++channel) {
      countSteps(countedChannel(comm, channel), kernel, work, counts_);
      for (const StepCount& count : counts_) {
        add(comm, static_cast<int>(channel), count, operation, finder.maskOf(operation));
      }
    }
  }
  for (const device::P2pWork& work : launch.messages()) {
    const std::size_t out = finder.message(true, work.sendPeer, work.send);
    const std::size_t in = finder.message(false, work.recvPeer, work.recv);
    for (unsigned channel = work.channelLo; channel <= work.channelHi; ++channel) {
      countSteps(countedChannel(comm, channel), work, counts_);
      for (const StepCount& count : counts_) {
        const std::size_t operation = count.direction == device::Direction::Send ? out : in;
        add(comm, static_cast<int>(channel), count, operation, finder.maskOf(operation));
      }
    }
  }
}

/// What a head does for its node: the other end is the network, which is no rank.
void ExpectedPlan::addCollNetWorks(const ncclComm& comm, const PlannedLaunch& launch, OperationFinder& finder) {
  const CommCollNet& collNet = *comm.parts.collNet;
  const CollNetSteps steps = collNet.steps(launch.algorithm);
  for (const device::CollWork& work : launch.colls()) {
    const std::size_t operation = finder.collective(work);
    if (steps.send == nullptr) continue;
    const std::uint64_t chunk = work.chunkBytes / device::typeBytes(launch.type);
    for (const bool sends : {true, false}) {
      const proxy::ExpectedSteps expected{.sink = comm.parts.events,
                                          .mask = finder.maskOf(operation),
                                          .rank = comm.identity.rank,
                                          .peer = -1,
                                          .channel = steps.channel,
                                          .sends = sends,
                                          .steps = collNet.countSteps(launch.algorithm, launch.func, work.count, chunk),
                                          .chunkBytes = work.chunkBytes * steps.lanes};
      entries_.push_back({sends ? steps.send : steps.recv, expected, operation});
    }
  }
}

void ExpectedPlan::add(const ncclComm& comm, int channel, const StepCount& count, std::size_t operation, int mask) {
  const transport::Endpoint* const end = comm.parts.channels->endOf(count.peer, channel, count.kind, count.direction);
  const proxy::ProgressTask* const task = end == nullptr ? nullptr : const_cast<transport::Endpoint*>(end)->task();
  auto events = task == nullptr ? nullptr : task->stepEvents(static_cast<std::size_t>(count.protocol));
  if (events == nullptr) return;
  proxy::ExpectedSteps steps{.sink = comm.parts.events,
                             .mask = mask,
                             .rank = comm.identity.rank,
                             .peer = count.peer,
                             .channel = channel,
                             .sends = count.direction == device::Direction::Send,
                             .steps = count.steps,
                             .chunkBytes = count.stepBytes};
  entries_.push_back({std::move(events), std::move(steps), operation});
}

/// What algorithms of a network that reduces move inside a node nobody counts, and it hardly ever goes over a network.
void ExpectedPlan::addUncounted(const ncclComm& comm, const Plan& plan) {
  const Neighbours& neighbours = comm.parts.channels->neighbours();
  for (const std::vector<LinkRequest>* const links : {plan.usesCollNetDirect ? &neighbours.collNetDirect : nullptr,
                                                      plan.usesCollNetChain ? &neighbours.collNetChain : nullptr}) {
    if (links == nullptr) continue;
    for (const LinkRequest& link : *links) {
      for (const int channel : channelsIn(link.channels)) {
        transport::Endpoint* const end = comm.parts.channels->endOf(link.peer, channel, link.kind, link.direction);
        if (end == nullptr || end->task() == nullptr) continue;
        for (std::size_t protocol = 0; protocol < device::kProtocols; ++protocol) {
          if (auto events = end->task()->stepEvents(protocol)) uncounted_.push_back(std::move(events));
        }
      }
    }
  }
}

void ExpectedPlan::expect(std::span<void* const> handles) const {
  for (const auto& events : uncounted_) events->forget();
  for (const Entry& entry : entries_) {
    proxy::ExpectedSteps steps = entry.steps;
    if (entry.operation != OperationFinder::kNobody) steps.parent = handles[entry.operation];
    entry.events->expect(std::move(steps));
  }
}

}  // namespace tutti::comm
