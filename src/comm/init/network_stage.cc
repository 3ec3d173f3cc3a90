#include "comm/init/network_stage.h"

#include <fmt/format.h>

#include "base/environment.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/agreement/own_machine.h"
#include "comm/init/comm_options.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/network/own_nics.h"
#include "comm/network/relays.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/set_by_plugin.h"
#include "comm/state/communicator.h"
#include "gpu/context.h"
#include "gpu/dma_buf.h"
#include "plugin/network/net.h"
#include "topo/detect/detect.h"
#include "topo/machine/peer_info.h"
#include "topo/xml/xml.h"

namespace tutti::comm {

namespace {

Status choose(ncclComm& comm) {
  const gpu::Device& device = *comm.parts.device->device;
  const plugin::NetOpening opening{
      .commId = comm.parts.bootstrap->commHash(),
      .trafficClass = comm.config.values.trafficClass,
      .secret = comm.parts.bootstrap->keyFor("tutti network"),
      .gpuMemoryIsHost = device.driver().softGpu && gpu::reachedByNics(device.driver(), device.handle()),
      .who = describeComm(comm)};
  const auto open = [&]() -> Result<std::string> {
    ASSIGN(comm.parts.network, CommNetwork::open(comm.config.netName, opening));
    return fmt::format("network {}", comm.parts.network->net().name());
  };
  TRY(SetByPlugin::process().during(settingsSource(), open));
  info(kInit, "Using network {}", comm.parts.network->net().name());
  obeyPlugins(comm);
  if (comm.settings->gpuDirect.dmaBuf && gpu::exportsDmaBufs(device)) {
    info(kInit, "DMA-BUF is available on GPU device {}", device.ordinal());
    comm.parts.network->offerDmaBufs();
  }
  return {};
}

/// A topology that is written to a file shows what there is, not what was made of it.
Status fuse(ncclComm& comm) {
  CommNetwork& network = *comm.parts.network;
  if (!comm.settings->topology.dump.path.empty()) {
    network.reportCollNet();
    return {};
  }
  const auto describe = [&](const std::vector<topo::NetDeviceFacts>& nets) -> Result<std::optional<topo::XmlElement>> {
    ASSIGN(OwnMachine machine, readMachine(comm.parts.device->device->driver(), comm.settings->topology, nets));
    return std::move(machine.elements);
  };
  TRY(network.fuse(comm.settings->fusion, describe));
  network.reportCollNet();
  return {};
}

}  // namespace

Status openNetwork(ncclComm& comm) {
  if (comm.identity.nRanks == 1) return {};
  TRY(choose(comm));
  return fuse(comm);
}

Status joinRelays(ncclComm& comm) {
  if (comm.identity.nRanks == 1) return {};
  CommParts& parts = comm.parts;
  ASSIGN(parts.relays,
         RankRelays::join({.bootstrap = *parts.bootstrap,
                           .device = parts.device,
                           .network = parts.network,
                           .peers = parts.peers,
                           .rank = comm.identity.rank,
                           .relaysForOthers = parts.network != nullptr && parts.network->nics().relaysForOthers}));
  return {};
}

std::optional<std::vector<topo::NetDeviceFacts>> nicFacts(const ncclComm& comm) {
  if (!comm.parts.network) return std::nullopt;
  const CommNetwork& network = *comm.parts.network;
  return factsOf(network.devices(), network.usable(), network.collDevices(), network.dmaBufs());
}

}  // namespace tutti::comm
