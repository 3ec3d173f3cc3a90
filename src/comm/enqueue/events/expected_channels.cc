#include "comm/enqueue/events/expected_channels.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "comm/launch/channel_events.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/stamps.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

std::size_t stampsOf(const PlannedLaunch& launch) {
  return launch.nChannels * device::stampsOfChannel(launch.nWorks(), launch.func == device::Func::SendRecv);
}

}  // namespace

void ExpectedChannels::clear() {
  entries_.clear();
  sink_.reset();
  events_.reset();
  launched_.reset();
}

void ExpectedChannels::set(ncclComm& comm, std::span<const ToldOperation> told, Plan& plan) {
  clear();
  const bool wanted = std::any_of(told.begin(), told.end(),
                                  [](const ToldOperation& one) { return (one.mask & ncclProfileKernelCh) != 0; });
  if (!wanted) return;
  OperationFinder finder(told);
  std::size_t stamps = 0;
  for (const PlannedLaunch& launch : plan.launches) {
    addWorks(comm.identity.rank, launch, stamps, finder);
    stamps += stampsOf(launch);
  }
  if (entries_.empty()) return;
  const ErrorsAsInfo harmless;
  if (stamp(comm, plan, stamps).ok()) return;
  entries_.clear();
  info(kProfile, "The profiler does not hear of the channels of a kernel: {}", lastErrorText());
}

void ExpectedChannels::addWorks(int rank, const PlannedLaunch& launch, std::size_t stamps, OperationFinder& finder) {
  const std::size_t n = launch.nWorks();
  const auto eachChannel = [&](const auto& work, std::size_t operation, auto stampOf) {
    if ((finder.maskOf(operation) & ncclProfileKernelCh) == 0) return;
    for (unsigned channel = work.channelLo; channel <= work.channelHi; ++channel) {
      entries_.push_back({operation, static_cast<int>(channel), stamps + stampOf(channel - launch.firstChannel)});
    }
  };
  for (std::size_t i = 0; i < launch.colls().size(); ++i) {
    const device::CollWork& work = launch.colls()[i];
    eachChannel(work, finder.collective(work), [&](std::size_t block) { return device::collStamp(n, block, i); });
  }
  for (std::size_t i = 0; i < launch.messages().size(); ++i) {
    const device::P2pWork& work = launch.messages()[i];
    // What a rank sends to itself the half that sends copies.
    const bool toItself = work.recvPeer == rank && work.sendPeer == rank;
    for (const bool sends : {true, false}) {
      const int peer = sends ? work.sendPeer : work.recvPeer;
      if (peer < 0) continue;
      const std::size_t half = sends || toItself ? 0 : 1;
      eachChannel(work, finder.message(sends, peer, sends ? work.send : work.recv),
                  [&](std::size_t block) { return device::messageStamp(n, block, i, half); });
    }
  }
}

Status ExpectedChannels::stamp(ncclComm& comm, Plan& plan, std::size_t stamps) {
  CommParts& parts = comm.parts;
  if (!parts.channelEvents) parts.channelEvents = std::make_shared<ChannelEvents>();
  ASSIGN(launched_, parts.channelEvents->take(*parts.device->device, stamps));
  events_ = parts.channelEvents;
  sink_ = parts.events;
  device::Stamp* next = launched_->stamps->onDevice();
  for (PlannedLaunch& launch : plan.launches) {
    launch.args.stamps = next;
    next += stampsOf(launch);
  }
  return {};
}

void ExpectedChannels::fill(std::span<void* const> handles) const {
  launched_->sink = sink_;
  launched_->channels.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    launched_->channels.push_back({entry.channel, entry.stamp, handles[entry.operation]});
  }
}

void ExpectedChannels::expect(std::span<void* const> handles) {
  if (entries_.empty()) return;
  fill(handles);
  events_->expect(std::move(launched_));
  clear();
}

void ExpectedChannels::expectReplay(std::span<void* const> handles) {
  if (entries_.empty()) return;
  events_->tellBeforeReplay(*launched_);
  fill(handles);
  events_->expect(launched_);
}

}  // namespace tutti::comm
