#include "comm/init/channel_stage.h"

#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/settings/params.h"
#include "bootstrap/bootstrap.h"
#include "comm/agreement/peer_table.h"
#include "comm/connect/channels.h"
#include "comm/connect/shared_connections.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/stall_state.h"
#include "comm/diagnosis/stalls.h"
#include "comm/ending/watching.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/graph_refs.h"
#include "comm/launch/launch.h"
#include "comm/network/network.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/abort_word.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "plugin/network/net.h"
#include "proxy/group.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

constexpr int kFirstWithDomains = 90;  ///< compute capability with memory synchronization domains

std::string orderOf(std::span<const std::int32_t> ring) {
  constexpr std::size_t kLineLimit = 127;
  std::string order;
  for (const std::int32_t rank : ring) {
    order += fmt::format(" {}", rank);
    if (order.size() > kLineLimit) return order + " ...";
  }
  return order;
}

void logLayout(const ncclComm& comm, const topo::RankChannels& channels) {
  const topo::RankLayout& layout = *comm.parts.layout;
  info(kInit, "comm {} rank {} nRanks {} nNodes {} localRanks {} localRank {} MNNVL 0", fmt::ptr(&comm), layout.rank(),
       layout.nRanks(), layout.nNodes(), layout.localRanks(), layout.localRank());
  for (int c = 0; layout.rank() == 0 && c < channels.size(); ++c) {
    info(kInit, "Channel {:02}/{:02} :{}", c, channels.size(), orderOf(channels.ringOf(c)));
  }
  info(kInit, "{}", topo::treesLine(channels, layout.rank()));
  for (const std::string& line : topo::channelLines(channels, layout.rank())) info(kGraph, "{}", line);
}

/// Ranks that share a device wait for each other's kernels: in a graph, none of them may wait for another's end.
bool mayBeOrdered(const ncclComm& comm) {
  if (!sharesDeviceInProcess(comm.parts.peers, comm.identity.rank)) return true;
  info(kInit, "comm {}: launchOrderImplicit has no effect: other ranks of the process are on device {} as well",
       fmt::ptr(&comm), comm.parts.device->device->ordinal());
  return false;
}

/// graphUsageMode 2: graphs and launches are ordered among each other; 0 and 1 leave that to the application, which may
/// then do without any order inside a graph, too. A family has one order for all, whatever its members' modes.
Result<LaunchRules> launchRules(ncclComm& comm) {
  const bool mix = comm.config.values.graphUsageMode == 2;
  LaunchRules rules{
      .mix = mix, .orderWithin = mix || comm.config.values.graphStreamOrdering != 0, .holds = comm.graphs.get()};
  rules.marks = comm.identity.nRanks > 1 && comm.options.stall.report > milliseconds(0);
  const gpu::Device& device = *comm.parts.device->device;
  rules.remoteDomain = comm.settings->remoteDomain && device.facts().computeCapability >= kFirstWithDomains &&
                       device.driver().cuLaunchKernelEx != nullptr;
  if (comm.config.values.launchOrderImplicit != 0 && mayBeOrdered(comm)) {
    ASSIGN(rules.across, comm.parts.device->launchOrder());
  }
  if (comm.membership->family) rules.shared = comm.membership->family->order();
  return rules;
}

/// How the engine sees this communicator.
proxy::GroupHooks progressHooks(ncclComm& comm) {
  proxy::GroupHooks hooks;
  // As the watch over kernels saw them a quarter of a second ago at most: a call of the driver could wait for a thread
  // that waits, with a lock of the driver's, for the very kernel that the engine serves. Graphs hold the group.
  hooks.busy = [&launcher = *comm.parts.launcher] { return launcher.launchedUnseen(); };
  hooks.aborted = [&abort = comm.abort] { return abort.raised(); };
  hooks.events = comm.parts.events;
  // What was reported names connection, rank, host and cause.
  hooks.failed = [&comm](Status why) {
    // Messages of a wrong length, or from somebody who waits for none, may be those of another call.
    if (faultOnConnection(why) == Fault::Other && comm.calls->suspect(why, lastErrorText())) return lookAtKernels();
    failComm(comm, why, faultOnConnection(why));
  };
  return hooks;
}

StallSubject stallSubject(ncclComm& comm) {
  const CommParts& parts = comm.parts;
  return {.rank = comm.identity.rank,
          .nRanks = comm.identity.nRanks,
          .who = describeComm(comm),
          .device = *parts.device->device,
          .bootstrap = *parts.bootstrap,
          .channels = *parts.channels,
          .launcher = *parts.launcher,
          .relays = parts.relays.get(),
          .peers = parts.peers,
          .calls = comm.calls->log(),
          .board = *comm.stalls,
          .connecting = comm.progress.connecting,
          .awaited = *comm.progress.awaited,
          .collNet = [&comm] { return comm.parts.collNetTask(); }};
}

}  // namespace

Status buildChannels(ncclComm& comm, topo::RankChannels channels) {
  CommParts& parts = comm.parts;
  const gpu::Device& device = *parts.device->device;
  logLayout(comm, channels);
  comm.membership->channels = channels.size();
  if (parts.network) comm.membership->network = parts.network->net().name();
  const ChannelPlan plan{comm.identity.rank, comm.identity.nRanks, std::move(channels), parts.abortWord->onDevice()};
  ASSIGN(parts.channels, ChannelSet::create(device, plan, comm.memory));
  ASSIGN(LaunchRules rules, launchRules(comm));
  ASSIGN(parts.launcher, Launcher::create(device, std::move(rules)));
  ASSIGN(parts.progress, parts.device->group(progressHooks(comm)));
  parts.channels->driveBy(*parts.progress);
  if (const auto& family = comm.membership->family) {
    parts.channels->shareBy({family->connections(), comm.membership->places});
    family->connections()->alsoDrivenBy(parts.progress.get());
  }
  if (comm.identity.nRanks > 1) {
    ASSIGN(parts.stalls, StallProbe::create(stallSubject(comm), comm.options.stall));
  }
  return {};
}

}  // namespace tutti::comm
