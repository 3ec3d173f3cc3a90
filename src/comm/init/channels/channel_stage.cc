#include "comm/init/channels/channel_stage.h"

#include <fmt/format.h>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "comm/connect/channels.h"
#include "comm/connect/shared_connections.h"
#include "comm/init/channels/launcher_stage.h"
#include "comm/init/channels/probe_stage.h"
#include "comm/init/channels/progress_stage.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/state/abort_word.h"
#include "comm/state/communicator.h"
#include "comm/state/family.h"
#include "comm/state/membership.h"
#include "plugin/network/net.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

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

}  // namespace

Status buildChannels(ncclComm& comm, topo::RankChannels channels) {
  CommParts& parts = comm.parts;
  const gpu::Device& device = *parts.device->device;
  logLayout(comm, channels);
  comm.membership->channels = channels.size();
  if (parts.network) comm.membership->network = parts.network->net().name();
  const ChannelPlan plan{comm.identity.rank, comm.identity.nRanks, std::move(channels), parts.abortWord->onDevice()};
  ASSIGN(parts.channels, ChannelSet::create(device, plan, comm.memory));
  TRY(makeLauncher(comm));
  TRY(beginProgress(comm));
  parts.channels->driveBy(*parts.progress);
  if (const auto& family = comm.membership->family) {
    parts.channels->shareBy({family->connections(), comm.membership->places});
    family->connections()->alsoDrivenBy(parts.progress.get());
  }
  return comm.identity.nRanks > 1 ? makeStallProbe(comm) : Status();
}

}  // namespace tutti::comm
