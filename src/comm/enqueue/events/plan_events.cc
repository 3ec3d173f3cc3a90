#include "comm/enqueue/events/plan_events.h"

#include <algorithm>

#include "comm/plan/op.h"
#include "comm/plan/plan.h"
#include "comm/state/communicator.h"
#include "comm/tuning/filter.h"
#include "plugin/profiler.h"

namespace tutti::comm {

namespace {

constexpr unsigned kWarp = 32;

/// As plugins number collectives.
std::size_t functionNumber(ApiFunc func) {
  switch (func) {
    case ApiFunc::Broadcast:
      return 0;
    case ApiFunc::Reduce:
      return 1;
    case ApiFunc::AllGather:
      return 2;
    case ApiFunc::ReduceScatter:
      return 3;
    default:
      return 4;
  }
}

/// How many channels a message takes; 0: it has no content.
unsigned channelsOf(const Plan& plan, bool sends, int peer, const void* buffer) {
  for (const PlannedLaunch& launch : plan.launches) {
    for (const device::P2pWork& work : launch.messages()) {
      const bool isIt =
          sends ? work.sendPeer == peer && work.send == buffer : work.recvPeer == peer && work.recv == buffer;
      if (isIt) return work.channelHi - work.channelLo + 1U;
    }
  }
  return 0;
}

}  // namespace

void PlanEvents::clear() {
  sink_.reset();
  tellsGroup_ = false;
  operations_.clear();
  expected_.clear();
  channels_.clear();
  handles_.clear();
}

void PlanEvents::set(ncclComm& comm, std::span<const Op> ops, Plan& plan) {
  sink_ = comm.parts.events;
  rank_ = comm.identity.rank;
  operations_.reserve(ops.size());
  std::size_t collective = 0;
  for (const Op& op : ops) {
    if ((op.events.mask & ncclProfileGroup) != 0) tellsGroup_ = true;
    if (isMessageFunc(op.func)) {
      if ((op.events.mask & ncclProfileP2p) != 0) addMessages(op, plan, comm.identity.nRanks);
    } else if (op.count > 0) {
      const Decision& decision = plan.decisions[collective++];
      const std::uint64_t number = sink_->nextNumber(functionNumber(op.func));
      if ((op.events.mask & ncclProfileColl) != 0) addCollective(op, decision, number);
    }
  }
  expected_.set(comm, operations_, plan);
  channels_.set(comm, operations_, plan);
}

void PlanEvents::addCollective(const Op& op, const Decision& decision, std::uint64_t number) {
  const bool bytes = op.func == ApiFunc::AllGather || op.func == ApiFunc::Broadcast;
  plugin::Event event{};
  event.type = ncclProfileColl;
  event.parentObj = op.events.call;
  event.rank = rank_;
  event.coll.seqNumber = number;
  event.coll.func = apiFuncName(op.func).data();
  event.coll.sendBuff = op.sendbuff;
  event.coll.recvBuff = op.recvbuff;
  event.coll.count = bytes ? op.count * datatypeBytes(op.datatype) : op.count;
  event.coll.root = op.root;
  event.coll.datatype = datatypeName(bytes ? ncclInt8 : op.datatype).data();
  event.coll.nChannels = static_cast<std::uint8_t>(decision.channelHi - decision.channelLo + 1);
  event.coll.nWarps = static_cast<std::uint8_t>(std::max(1U, decision.choice.nThreads / kWarp));
  event.coll.algo = logName(decision.choice.algorithm).data();
  event.coll.proto = logName(decision.choice.protocol).data();
  operations_.push_back({event, op.events.mask});
}

void PlanEvents::addMessages(const Op& op, const Plan& plan, int nRanks) {
  if (isPointToPoint(op.func)) return addMessage(op, plan, op.func == ApiFunc::Send, op.root, 0);
  const bool all = op.func == ApiFunc::AlltoAll;
  const auto one = [&](bool sends, int peer, int block) {
    addMessage(op, plan, sends, peer, static_cast<std::size_t>(block));
  };
  if (op.func == ApiFunc::Gather) one(true, op.root, 0);
  if (op.func == ApiFunc::Scatter) one(false, op.root, 0);
  for (int peer = 0; peer < nRanks; ++peer) {
    if (all || (op.func == ApiFunc::Scatter && op.root == rank_)) one(true, peer, peer);
    if (all || (op.func == ApiFunc::Gather && op.root == rank_)) one(false, peer, peer);
  }
}

void PlanEvents::addMessage(const Op& op, const Plan& plan, bool sends, int peer, std::size_t block) {
  const std::size_t offset = block * op.count * datatypeBytes(op.datatype);
  auto* const whole = static_cast<std::byte*>(sends ? const_cast<void*>(op.sendbuff) : op.recvbuff);
  std::byte* const buffer = whole == nullptr ? nullptr : whole + offset;
  plugin::Event event{};
  event.type = ncclProfileP2p;
  event.parentObj = op.events.call;
  event.rank = rank_;
  event.p2p.func = sends ? "Send" : "Recv";
  event.p2p.buff = buffer;
  event.p2p.datatype = datatypeName(op.datatype).data();
  event.p2p.count = op.count;
  event.p2p.peer = peer;
  event.p2p.nChannels = static_cast<std::uint8_t>(channelsOf(plan, sends, peer, buffer));
  operations_.push_back({event, op.events.mask});
}

void PlanEvents::start() {
  if (tellsGroup_) {
    plugin::Event event{};
    event.type = ncclProfileGroup;
    group_ = sink_->start(event);
  }
  handles_.clear();
  handles_.reserve(operations_.size());
  for (const ToldOperation& operation : operations_) {
    plugin::Event event = operation.event;
    (event.type == ncclProfileColl ? event.coll.parentGroup : event.p2p.parentGroup) = group_;
    handles_.push_back(sink_->start(event));
  }
}

void PlanEvents::stop() {
  for (void* handle : handles_) sink_->stop(handle);
  handles_.clear();
  if (tellsGroup_) sink_->stop(group_);
  group_ = nullptr;
}

void PlanEvents::tell() {
  const std::lock_guard lock(replays_);
  start();
  expect(handles_);
  channels_.expectReplay(handles_);
  stop();
}

void countUnheard(plugin::EventSink& sink, std::span<const Op> ops) {
  for (const Op& op : ops) {
    if (!isMessageFunc(op.func) && op.count > 0) sink.nextNumber(functionNumber(op.func));
  }
}

}  // namespace tutti::comm
